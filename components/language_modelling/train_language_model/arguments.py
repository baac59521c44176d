"""The command line of the training."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from presets import OVERRIDES, PRESETS
from schedule import SCHEDULES


def arguments() -> Namespace:
    """Parse the inputs and outputs that component.yaml describes. Inputs that are optional there can be None."""
    return parser().parse_args()


def parser() -> ArgumentParser:
    """Return the parser of the command line."""
    parser = ArgumentParser(description="Train a GPT on the ranks that there are.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--initial_model", type=Path)
    parser.add_argument("--resume_from_checkpoint", type=Path)
    parser.add_argument("--deepspeed", type=Path)
    parser.add_argument("--model_size", choices=list(PRESETS), default="3M")
    for name in OVERRIDES:
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--num_train_epochs", type=float, default=1.0)
    parser.add_argument("--max_steps", type=int, default=-1)
    parser.add_argument("--per_device_train_batch_size", type=int)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=8)
    parser.add_argument("--gradient_accumulation_steps", type=int)
    parser.add_argument("--learning_rate", type=float)
    parser.add_argument("--lr_scheduler_type", choices=SCHEDULES, default="cosine")
    parser.add_argument("--warmup_steps", type=int)
    parser.add_argument("--min_lr_ratio", type=float, default=0.1)
    parser.add_argument("--weight_decay", type=float, default=0.1)
    parser.add_argument("--max_grad_norm", type=float)
    parser.add_argument("--precision")
    parser.add_argument("--tf32", type=boolean, default=True)
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--activation_checkpointing", type=boolean, default=False)
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--shard_group_size", type=int)
    parser.add_argument("--deepspeed_stage", type=int)
    parser.add_argument("--offload", type=boolean, default=False)
    parser.add_argument("--dataloader_num_workers", type=int, default=0)
    parser.add_argument("--verify_data", type=boolean, default=True)
    parser.add_argument("--logging_steps", type=int, default=10)
    parser.add_argument("--eval_steps", type=int, default=0)
    parser.add_argument("--max_eval_samples", type=int, default=-1)
    parser.add_argument("--save_steps", type=int, default=500)
    parser.add_argument("--save_total_limit", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True)
    return parser


def boolean(text: str) -> bool:
    """Parse a boolean as Azure ML writes it."""
    return text.lower() == "true"
