"""Tune a model of transformers in a loop of one's own with Accelerate, under any launch."""

from __future__ import annotations

import argparse
from datetime import timedelta
from pathlib import Path

import torch
from accelerate import Accelerator, InitProcessGroupKwargs
from accelerate.utils import set_seed
from parallel import check_weights, check_world, share
from pretrained import TASKS, examples, load
from texts import read
from torch.utils.data import DataLoader

from allranks.errors import InputError, Problem
from allranks.runtime import Metrics, detect

LOG_EVERY = 10
"""Steps between two points of the loss curve."""

TIMEOUT = timedelta(minutes=10)
"""Time limit for waiting on the other ranks."""


def main() -> None:
    args = arguments()
    env = detect()
    accelerator = Accelerator(kwargs_handlers=[InitProcessGroupKwargs(timeout=TIMEOUT)])
    check_world(env, accelerator.num_processes)
    metrics = Metrics(is_main=accelerator.is_main_process)
    set_seed(args.seed)
    texts = read(args.data)
    model, tokenizer = load(args.model, args.task, texts)
    batches = DataLoader(
        examples(tokenizer, args.task, texts, args.length),
        batch_size=share(args.batch_size, env.world_size),
        shuffle=True,
        drop_last=True,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    if not len(batches):
        raise InputError(
            Problem(
                "input data",
                f"fewer examples than batch_size {args.batch_size}",
                "at least as many",
                "give more text, or a smaller batch_size or length",
            )
        )

    model.train()
    step = 0
    while step < args.steps:
        for batch in batches:
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step == 1:
                check_weights(env, accelerator.unwrap_model(model))
            if step % LOG_EVERY == 0 or step == args.steps:
                mean = accelerator.reduce(loss.detach(), "mean")
                metrics.log({"train_loss": float(mean)}, step=step, total=args.steps)
            if step == args.steps:
                break

    metrics.close("FINISHED")
    if accelerator.is_main_process:
        accelerator.unwrap_model(model).save_pretrained(args.tuned)
        tokenizer.save_pretrained(args.tuned)
        print(f"{env.world_size} ranks: loss of step {step} {float(mean):.4f}", flush=True)
    accelerator.wait_for_everyone()
    accelerator.end_training()


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--task", choices=TASKS, default="causal")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tuned", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
