"""The component's inputs and outputs."""

from __future__ import annotations

import argparse
from pathlib import Path

from presets import PRESETS

from allranks.errors import InputError, Problem
from allranks_steps.images.prepared_images import BadData, Description, Images, check_labels, read, read_description


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description="Train an image classifier with TensorFlow.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--resume_from_checkpoint", type=Path)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="resnet50")
    parser.add_argument("--image_size", type=int, default=0)
    parser.add_argument("--num_train_epochs", type=int, default=8)
    parser.add_argument("--max_steps", type=int, default=-1)
    parser.add_argument("--per_device_train_batch_size", type=int, default=32)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.001)
    parser.add_argument("--lr_scheduler_type", default="cosine")
    parser.add_argument("--warmup_ratio", type=float, default=0.1)
    parser.add_argument("--warmup_steps", type=int, default=0)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--max_grad_norm", type=float, default=0.0)
    parser.add_argument("--label_smoothing_factor", type=float, default=0.0)
    parser.add_argument("--max_shift", type=int, default=0)
    parser.add_argument("--horizontal_flip", type=boolean, default=False)
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16", "float16"], default="auto")
    parser.add_argument("--logging_steps", type=int, default=10)
    parser.add_argument("--eval_steps", type=int, default=0)
    parser.add_argument("--save_steps", type=int, default=500)
    parser.add_argument("--save_total_limit", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True)
    return parser.parse_args()


def boolean(text: str) -> bool:
    """Return the value of a boolean input, which Azure ML writes as True or False."""
    return text.lower() == "true"


def data(folder: Path) -> tuple[Description, Images, Images]:
    """Return the description, the training set and the validation set.

    Raise InputError if they cannot be read, if a label is no class's index, or if there is nothing to validate on.
    """
    try:
        description, splits = read_description(folder), {name: read(folder, name) for name in ("train", "validation")}
        check_labels(description, splits)
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None
    if not len(splits["validation"]):
        found, fix = "no image in the validation split", "give prepare_images a larger validation_fraction"
        raise InputError(Problem("input data", found, "at least one", fix))
    return description, splits["train"], splits["validation"]
