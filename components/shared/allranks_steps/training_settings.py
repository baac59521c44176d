"""Derive the number of steps, the settings of the strategy and the parameter groups from the inputs of a training."""

from argparse import Namespace
from typing import Any

from torch import nn

from allranks import runtime
from allranks_steps.messages import bad_input
from allranks_steps.schedule import Schedule


def total_steps(args: Namespace, passes_of_epoch: int) -> int:
    """Return the number of optimizer steps. Raise InputError if there would be none, or only those of the warm-up.

    passes_of_epoch: forward and backward passes of a rank in an epoch
    """
    if args.max_steps == 0:
        fix = "leave it out to train by epochs"
        raise bad_input("input max_steps", "0", "a positive number, or -1", fix)
    passes = int(args.num_train_epochs * passes_of_epoch)
    total = int(args.max_steps if args.max_steps > 0 else passes // args.gradient_accumulation_steps)
    if not total:
        found = f"{args.num_train_epochs:g}, which makes {passes} forward and backward passes, and no optimizer step"
        expected = f"at least gradient_accumulation_steps ({args.gradient_accumulation_steps}) of them"
        fix = "give more num_train_epochs, max_steps, or a smaller gradient_accumulation_steps or "
        fix += "per_device_train_batch_size"
        raise bad_input("input num_train_epochs", found, expected, fix)
    if (args.warmup_steps or 0) >= total and args.lr_scheduler_type != "constant":
        found = f"{args.warmup_steps} of {total} steps"
        raise bad_input("input warmup_steps", found, "fewer than the training has", "give a smaller number")
    return total


def settings(
    args: Namespace,
    blocks: tuple[type[nn.Module], ...],
    schedule: Schedule,
    sampler: runtime.GlobalBatches,
    **more: Any,
) -> runtime.TrainingSettings:
    """Return the settings of the strategy. Raise InputError. more: further settings"""
    return runtime.TrainingSettings(
        gradient_accumulation_steps=args.gradient_accumulation_steps,
        per_device_train_batch_size=args.per_device_train_batch_size,
        passes_per_batch=sampler.passes_per_batch,
        max_grad_norm=args.max_grad_norm,
        precision=args.precision,
        tf32=args.tf32,
        compile=args.compile,
        blocks=blocks,
        activation_checkpointing=args.activation_checkpointing,
        offload=args.offload,
        deepspeed_config=getattr(args, "deepspeed", None),
        warmup_steps=schedule.warmup_steps,
        max_steps=schedule.total,
        **more,
    )


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the groups of an optimizer. Biases and the weights of normalization have no weight decay."""
    parameters = list(model.parameters())
    return [
        {"params": [each for each in parameters if each.dim() >= 2], "weight_decay": weight_decay},
        {"params": [each for each in parameters if each.dim() < 2], "weight_decay": 0.0},
    ]
