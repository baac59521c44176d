"""What a training starts with: the shape and weights of its model, its settings and steps, room for its outputs."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import presets
from gpt import Block, Gpt, Shape
from language_model import TOKENIZER, BadModel, files, read_shape, read_weights, vocabulary
from training_data import TrainingData

from allranks import runtime
from allranks.errors import InputError, Problem

FLOAT32_BYTES = 4
CHECKPOINT_VALUES = 3
"""Values that a checkpoint holds for each parameter: the weight, and Adam's two moments."""


def shape(args: Namespace, data: TrainingData) -> Shape:
    """Return the shape of the model to train, for the data's vocabulary. Raise InputError."""
    size = data.description.vocabulary_size
    if args.initial_model is None:
        return presets.shape(args, size)
    try:
        found, _ = read_shape(args.initial_model)
        tokenizer = (files(args.initial_model) / TOKENIZER).read_text(encoding="utf-8")
    except (BadModel, OSError) as error:
        raise InputError(Problem("input initial_model", str(error))) from None
    problems = [
        Problem(
            f"input {name}",
            f"{getattr(args, name)}, and {getattr(found, name)} in initial_model",
            "the dimensions of the initial model",
            f"leave {name} out",
        )
        for name in presets.OVERRIDES
        if getattr(args, name) not in (None, getattr(found, name))
    ]
    if found.vocabulary_size != size or vocabulary(tokenizer) != vocabulary(data.tokenizer):
        problems.append(
            Problem(
                "input initial_model",
                f"{found.vocabulary_size} tokens; the data has another tokenizer, with {size}",
                "text that was prepared with the model's tokenizer",
                f"give prepare_text the model's {TOKENIZER} as its tokenizer",
            )
        )
    if problems:
        raise InputError.of(problems)
    return found


def build(shape: Shape, initial_model: Path | None) -> Callable[[], Gpt]:
    """Return a function that builds the model, with the weights of the initial model if there is one.

    Raise InputError if they cannot be read.
    """
    if initial_model is None:
        return lambda: Gpt(shape)
    try:
        weights = read_weights(initial_model)
    except BadModel as error:
        raise InputError(Problem("input initial_model", str(error))) from None

    def built() -> Gpt:
        model = Gpt(shape)
        try:
            model.load_state_dict(weights)
        except RuntimeError as error:
            raise InputError(Problem("input initial_model", str(error))) from None
        return model

    return built


def settings(args: Namespace) -> runtime.TrainingSettings:
    """Return the settings of the strategy. Raise InputError.

    With a file of DeepSpeed's, an input that is not given has the file's value.
    """
    without_file = {"gradient_accumulation_steps": 1, "max_grad_norm": 1.0, "precision": "float32"}
    given = {name: getattr(args, name) for name in without_file}
    if args.deepspeed is None:
        given = {name: without_file[name] if value is None else value for name, value in given.items()}
    return runtime.TrainingSettings(
        **given,
        tf32=args.tf32,
        compile=args.compile,
        blocks=(Block,),
        activation_checkpointing=args.activation_checkpointing,
        shard_group_size=args.shard_group_size,
        per_device_train_batch_size=args.per_device_train_batch_size,
        zero_stage=args.zero_stage,
        offload=args.offload,
        deepspeed_config=args.deepspeed,
    )


@dataclass(frozen=True)
class Passes:
    """Forward and backward passes. batch_size: sequences of a rank in one; accumulation: passes of an optimizer step"""

    batch_size: int
    accumulation: int


def passes(args: Namespace, world_size: int) -> Passes:
    """Return the passes by the inputs, and by DeepSpeed's file where they are not given.

    The strategy compares the two, and reports a file that cannot be read.
    """
    file: dict[str, Any] = {}
    if args.deepspeed is not None:
        with suppress(OSError, ValueError, AttributeError):
            content = json.loads(args.deepspeed.read_text(encoding="utf-8"))
            file = {name: value for name, value in content.items() if isinstance(value, int)}
    batch_size = args.per_device_train_batch_size or file.get("train_micro_batch_size_per_gpu")
    accumulation = args.gradient_accumulation_steps or file.get("gradient_accumulation_steps")
    if total := file.get("train_batch_size"):
        accumulation = accumulation or (total // (batch_size * world_size) if batch_size else 1)
        batch_size = batch_size or total // (max(accumulation, 1) * world_size)
    return Passes(batch_size or presets.BATCH_SIZE, accumulation or 1)


def total_steps(args: Namespace, windows: int, passes: Passes, world_size: int) -> int:
    """Return the number of optimizer steps. windows: in the training data. Raise InputError."""
    total = args.max_steps
    if total < 0:
        per_epoch = windows // (passes.batch_size * world_size)
        total = max(1, int(args.num_train_epochs * per_epoch / passes.accumulation))
    problems = []
    if total == 0:
        problems.append(Problem("input max_steps", "0", "a positive number, or -1", "leave it out to train by epochs"))
    if args.warmup_steps is not None and args.warmup_steps >= total > 0:
        found = f"{args.warmup_steps} of {total} steps"
        problems.append(Problem("input warmup_steps", found, "fewer than the training has", "give a smaller number"))
    if problems:
        raise InputError.of(problems)
    return total


def require_space(model: Path, checkpoints: Path, parameters: int) -> None:
    """Raise InputError if the outputs have no room for the model and a checkpoint."""
    sizes = {model: FLOAT32_BYTES * parameters, checkpoints: FLOAT32_BYTES * CHECKPOINT_VALUES * parameters}
    places = {path: next(parent for parent in (path, *path.absolute().parents) if parent.is_dir()) for path in sizes}
    for path, needed in sizes.items():
        # Outputs on one disk share its room.
        same = [other for other in sizes if places[other].stat().st_dev == places[path].stat().st_dev]
        free, needed = shutil.disk_usage(places[path]).free, sum(sizes[other] for other in same)
        if free < needed:
            raise InputError(
                Problem(
                    f"output {'model' if path == model else 'checkpoints'}",
                    f"{free / 2**30:.1f} GiB free at {places[path]}",
                    f"{needed / 2**30:.1f} GiB for {parameters:,} parameters and the state of their optimizer",
                    "free some space, or write to a larger disk",
                )
            )
