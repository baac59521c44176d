"""The component's inputs and outputs, and what can be said about them without the data."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedule import SCHEDULES

from allranks.errors import InputError, Problem
from allranks_steps.images.image_data.policies import POLICIES
from allranks_steps.images.presets import PRESETS


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    return parser().parse_args()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Train an image classifier.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--initial_model", type=Path)
    parser.add_argument("--pretrained_model", type=Path)
    parser.add_argument("--resume_from_checkpoint", type=Path)
    parser.add_argument("--preset", choices=sorted(PRESETS), default="resnet50")
    parser.add_argument("--image_size", type=int, default=0)
    parser.add_argument("--drop_path_rate", type=float)
    parser.add_argument("--num_train_epochs", type=int, default=8)
    parser.add_argument("--max_steps", type=int, default=-1)
    parser.add_argument("--per_device_train_batch_size", type=int, default=32)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=64)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--optim", choices=["adamw_torch", "sgd"], default="adamw_torch")
    parser.add_argument("--learning_rate", type=float, default=0.001)
    parser.add_argument("--lr_scheduler_type", choices=SCHEDULES, default="cosine")
    parser.add_argument("--warmup_ratio", type=float, default=0.1)
    parser.add_argument("--warmup_steps", type=int, default=0)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--max_grad_norm", type=float, default=0.0)
    parser.add_argument("--label_smoothing_factor", type=float, default=0.0)
    parser.add_argument("--ema_decay", type=float, default=0.0)
    parser.add_argument("--min_crop_scale", type=float, default=1.0)
    parser.add_argument("--max_shift", type=int, default=0)
    parser.add_argument("--horizontal_flip", type=boolean, default=False)
    parser.add_argument("--auto_augment", choices=POLICIES, default="none")
    parser.add_argument("--mixup_alpha", type=float, default=0.0)
    parser.add_argument("--cutmix_alpha", type=float, default=0.0)
    parser.add_argument("--augment_on", choices=["worker", "device"], default="worker")
    parser.add_argument("--dataloader_num_workers", type=int, default=0)
    parser.add_argument("--dataloader_drop_last", type=boolean, default=False)
    parser.add_argument("--shuffle_window", type=int, default=1000)
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16", "float16"], default="auto")
    parser.add_argument("--tf32", type=boolean, default=False)
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--channels_last", type=boolean, default=False)
    parser.add_argument("--sync_batchnorm", type=boolean, default=False)
    parser.add_argument("--activation_checkpointing", type=boolean, default=False)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--logging_steps", type=int, default=10)
    parser.add_argument("--eval_steps", type=int, default=0)
    parser.add_argument("--save_steps", type=int, default=500)
    parser.add_argument("--save_total_limit", type=int, default=2)
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--deepspeed_stage", type=int, default=2)
    parser.add_argument("--offload", type=boolean, default=False)
    parser.add_argument("--deepspeed", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True)
    return parser


def boolean(text: str) -> bool:
    """Return the value of a boolean input, which Azure ML writes as True or False."""
    return text.lower() == "true"


def check(args: argparse.Namespace) -> None:
    """Raise InputError for every input that cannot be right, whatever the data."""
    problems = []

    def require(condition: bool, name: str, expected: str) -> None:
        if not condition:
            problems.append(Problem(f"input {name}", str(getattr(args, name)), expected))

    for name in (
        "per_device_train_batch_size",
        "per_device_eval_batch_size",
        "gradient_accumulation_steps",
        "num_train_epochs",
        "logging_steps",
        "save_steps",
        "save_total_limit",
        "shuffle_window",
    ):
        require(getattr(args, name) >= 1, name, "at least 1")
    for name in ("image_size", "max_shift", "warmup_steps", "dataloader_num_workers", "eval_steps", "seed"):
        require(getattr(args, name) >= 0, name, "at least 0")
    for name in ("warmup_ratio", "label_smoothing_factor", "ema_decay"):
        require(0 <= getattr(args, name) < 1, name, "at least 0 and less than 1")
    for name in ("weight_decay", "max_grad_norm", "mixup_alpha", "cutmix_alpha"):
        require(getattr(args, name) >= 0, name, "at least 0")
    require(args.learning_rate > 0, "learning_rate", "more than 0")
    require(0 < args.min_crop_scale <= 1, "min_crop_scale", "more than 0 and at most 1")
    require(args.max_steps == -1 or args.max_steps > 0, "max_steps", "more than 0, or -1 for num_train_epochs")
    if args.initial_model and args.pretrained_model:
        found = "given beside pretrained_model"
        problems.append(Problem("input initial_model", found, "one model to start from", "leave one of them out"))
    if problems:
        raise InputError.of(problems)
