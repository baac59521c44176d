"""Write the weights of a checkpoint as safetensors files, and into a copy of an MLflow model."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import dcp_checkpoints
import deepspeed_checkpoints
import mlflow_template
import our_checkpoints
import safetensors_files
from weights import Weights, bad_checkpoints, converted

from allranks.errors import InputError, Problem
from allranks.runtime import arguments


def consolidate(args: Namespace) -> None:
    """Write the outputs. Raise InputError."""
    name, weights = _weights(args.checkpoints, args.step, args.best, args.part)
    weights = converted(weights, args.precision)
    args.model.mkdir(parents=True, exist_ok=True)
    if args.template is not None:
        replaced = mlflow_template.replace_weights(args.template, args.model, weights)
        print(f"replaced the weights in {', '.join(map(str, replaced))} of the model")
    files = safetensors_files.write(args.weights, weights, round(args.max_shard_size * 1e9))
    values = sum(weight.size for weight in weights.values())
    print(f"{name}: {len(weights)} tensors, {values / 1e9:.3f} GB, in {', '.join(file.name for file in files)}")


def _weights(folder: Path, step: int | None, best: str, part: str | None) -> tuple[str, Weights]:
    """Return the checkpoint's name and its weights."""
    if entries := our_checkpoints.found_in(folder):
        entry = our_checkpoints.select(entries, step, best)
        return entry.path.name, our_checkpoints.weights_of(entry, part)
    if best != "none":
        found = f"{best}, but only checkpoints of this project's trainings have a metric"
        raise InputError(Problem("input best", found, "none", "give the step"))
    if deepspeed_checkpoints.is_one(folder):
        return folder.name, deepspeed_checkpoints.weights_of(folder, step)
    if dcp_checkpoints.is_one(folder):
        path = dcp_checkpoints.select(folder, step)
        return path.name, dcp_checkpoints.weights_of(path, part)
    raise bad_checkpoints(
        f"no checkpoint in {folder}",
        "the checkpoints of a training, or a folder to which DeepSpeed or torch.distributed.checkpoint saved",
        "give the output `checkpoints` of a training",
    )


if __name__ == "__main__":
    consolidate(arguments())
