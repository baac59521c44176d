"""Write the weights of a checkpoint as safetensors files, and into a copy of an MLflow model."""

from argparse import Namespace
from pathlib import Path

import dcp_checkpoints
import deepspeed_checkpoints
import mlflow_template
import torch
from huggingface_hub import save_torch_state_dict
from torch import Tensor

from allranks.runtime import arguments
from allranks_steps.messages import bad_input

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def consolidate(args: Namespace) -> None:
    """Write the outputs. Raise InputError."""
    name, weights = read(args.checkpoints, args.step, args.best, args.part)
    seen: set[int] = set()
    for key, value in weights.items():
        if value.is_floating_point() and args.precision != "saved":
            value = value.to(PRECISIONS[args.precision])
        # Tied weights, and parts of a larger tensor, share memory, which safetensors does not allow.
        memory = value.untyped_storage()
        weights[key] = value.clone() if memory.data_ptr() in seen or memory.nbytes() > value.nbytes else value
        seen.add(memory.data_ptr())
    args.model.mkdir(parents=True, exist_ok=True)
    if args.template is not None:
        replaced = mlflow_template.replace_weights(args.template, args.model, weights)
        print(f"replaced the weights in {', '.join(map(str, replaced))} of the model")
    args.weights.mkdir(parents=True, exist_ok=True)
    save_torch_state_dict(weights, args.weights, max_shard_size=round(args.max_shard_size * 1e9))
    files = sorted(file.name for file in args.weights.glob("model*.safetensors*"))
    size = sum(value.nbytes for value in weights.values())
    print(f"{name}: {len(weights)} tensors, {size / 1e9:.3f} GB, in {', '.join(files)}")


def read(folder: Path, step: int | None, best: str, part: str | None) -> tuple[str, dict[str, Tensor]]:
    """Return the checkpoint's name and its weights on the CPU. Raise InputError."""
    if best != "none" and not dcp_checkpoints.entries(folder):
        found = f"{best}, but only checkpoints of this project's trainings have a metric"
        raise bad_input("input best", found, "none", "give the step")
    if deepspeed_checkpoints.is_one(folder):
        return folder.name, deepspeed_checkpoints.read(folder, step)
    path = dcp_checkpoints.select(folder, step, best)
    return path.name, dcp_checkpoints.read(path, part)


if __name__ == "__main__":
    consolidate(arguments())
