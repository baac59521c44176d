"""The component's inputs and outputs."""

from __future__ import annotations

import argparse
from pathlib import Path

from allranks.errors import InputError, Problem

PRECISIONS = {"float32": "32-true", "bfloat16": "bf16-mixed", "float16": "16-mixed"}
"""Lightning's names of the precisions."""

SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup")


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description="Train an image classifier with Lightning.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--resume_from_checkpoint", type=Path)
    parser.add_argument("--devices", type=int, help="processes on each instance; by default those that are there")
    parser.add_argument("--num_nodes", type=int, help="instances; by default those of the launch")
    parser.add_argument("--preset", default="resnet50")
    parser.add_argument("--image_size", type=int, default=0)
    parser.add_argument("--num_train_epochs", type=int, default=8)
    parser.add_argument("--max_steps", type=int, default=-1)
    parser.add_argument("--per_device_train_batch_size", type=int, default=32)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=64)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--learning_rate", type=float, default=0.001)
    parser.add_argument("--lr_scheduler_type", choices=SCHEDULES, default="cosine")
    parser.add_argument("--warmup_ratio", type=float, default=0.1)
    parser.add_argument("--warmup_steps", type=int, default=0)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--max_grad_norm", type=float, default=0.0)
    parser.add_argument("--label_smoothing_factor", type=float, default=0.0)
    parser.add_argument("--max_shift", type=int, default=0)
    parser.add_argument("--horizontal_flip", type=boolean, default=False)
    parser.add_argument("--dataloader_num_workers", type=int, default=0)
    parser.add_argument("--precision", choices=["auto", *PRECISIONS], default="auto")
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--strategy", choices=["ddp", "fsdp"], default="ddp")
    parser.add_argument("--logging_steps", type=int, default=10)
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


def steps(args: argparse.Namespace, count: int, world_size: int) -> tuple[int, int]:
    """Return the number of optimizer steps of an epoch, and of the training. count: training images

    Raise InputError if the images do not fill a step.
    """
    images = args.per_device_train_batch_size * world_size * args.gradient_accumulation_steps
    passes = count // (args.per_device_train_batch_size * world_size)
    if not count // images:
        found = f"{args.per_device_train_batch_size} x {args.gradient_accumulation_steps} on each of {world_size} ranks"
        fix = "give a smaller batch, fewer ranks or more images"
        raise InputError(
            Problem("input per_device_train_batch_size", f"{found}, of {count} images", "a step that is full", fix)
        )
    # Lightning steps at the end of an epoch also after fewer passes.
    in_epoch = -(-passes // args.gradient_accumulation_steps)
    return in_epoch, args.max_steps if args.max_steps > 0 else args.num_train_epochs * in_epoch


def check_device(args: argparse.Namespace, *, on_gpu: bool) -> None:
    """Raise InputError for what Lightning does on GPUs alone."""
    if on_gpu:
        return
    if args.strategy == "fsdp":
        found, fix = "fsdp on CPUs, which Lightning refuses", "set ddp, or use train_image_classifier"
        raise InputError(Problem("input strategy", found, "ddp", fix))
    if args.precision == "float16":
        found, fix = "float16 on CPUs, which Lightning refuses", "set bfloat16"
        raise InputError(Problem("input precision", found, "float32 or bfloat16", fix))
