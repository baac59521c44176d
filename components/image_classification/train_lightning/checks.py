"""Check inputs for Lightning, which the spec cannot express."""

import argparse

from allranks_steps.messages import bad_input

PRECISIONS = {"float32": "32-true", "bfloat16": "bf16-mixed", "float16": "16-mixed"}
"""Lightning's names of the precisions."""


def steps(args: argparse.Namespace, count: int, world_size: int) -> tuple[int, int]:
    """Return the number of optimizer steps of an epoch, and of the training. count: training images

    Raise InputError if the images do not fill a step.
    """
    images = args.per_device_train_batch_size * world_size * args.gradient_accumulation_steps
    passes = count // (args.per_device_train_batch_size * world_size)
    if not count // images:
        found = f"{args.per_device_train_batch_size} x {args.gradient_accumulation_steps} on each of {world_size} ranks"
        fix = "give a smaller batch, fewer ranks or more images"
        raise bad_input("input per_device_train_batch_size", f"{found}, of {count} images", "a step that is full", fix)
    # Lightning steps at the end of an epoch also after fewer passes.
    in_epoch = -(-passes // args.gradient_accumulation_steps)
    return in_epoch, args.max_steps if args.max_steps > 0 else args.num_train_epochs * in_epoch


def check_device(args: argparse.Namespace, *, on_gpu: bool) -> None:
    """Raise InputError for what Lightning supports only on GPUs."""
    if on_gpu:
        return
    if args.strategy == "fsdp":
        found, fix = "fsdp on CPUs, which Lightning refuses", "set ddp, or use train_image_classifier"
        raise bad_input("input strategy", found, "ddp", fix)
    if args.precision == "float16":
        found, fix = "float16 on CPUs, which Lightning refuses", "set bfloat16"
        raise bad_input("input precision", found, "float32 or bfloat16", fix)
