"""Train a small GPT on the ranks that there are, by the strategy and under the launch that was chosen."""

from __future__ import annotations

import argparse
import math
import resource
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import windows
from gpt import Block, Gpt, Shape, parameter_count
from history import History, Point
from numpy.typing import NDArray
from prepared_text import TOKENIZER, BadData, Description, read_description, read_tokens
from saving import save
from torch.nn import functional

from allranks import runtime
from allranks.errors import InputError, Problem

LOG_EVERY = 10
"""Steps between two points of the loss curve, each of which costs an all-reduce of the loss."""


def train(ranks: runtime.Ranks) -> None:
    args = arguments()
    check(args)
    folder, description, tokens = data(args.data, args.block_size)
    shape = Shape(description.vocabulary_size, args.block_size, args.layers, args.heads, args.width)
    torch.manual_seed(args.seed)
    model = Gpt(shape, args.dropout)
    parameters = parameter_count(model)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=args.learning_rate, betas=(0.9, 0.95), weight_decay=args.weight_decay
    )
    training = ranks.strategy.prepare(model, optimizer, settings(args))
    sampler = runtime.ResumableSampler(
        windows.count(tokens, args.block_size),
        ranks,
        batch_size=args.batch_size // args.accumulate,
        seed=args.seed,
        drop_last=True,
    )
    history = History()
    checkpoints = runtime.Checkpoints(
        args.checkpoints,
        ranks,
        {"training": training, "sampler": sampler, "history": history},
        every_steps=args.checkpoint_every,
    )
    step = checkpoints.load(start_from=args.resume_from)
    about = {
        "strategy": args.strategy,
        "zero_stage": args.zero_stage if args.strategy == "deepspeed" else None,
        "launcher": ranks.launcher,
        "world_size": ranks.world_size,
        "parameters": parameters,
        "tokens_per_step": args.batch_size * args.block_size,
        "sample": "token",
        "samples_per_step": args.batch_size * args.block_size,
    }
    ranks.metrics.log_params(about | {name: value for name, value in vars(args).items() if not isinstance(value, Path)})
    if ranks.is_main:
        print(f"{parameters:,} parameters on {ranks.world_size} ranks by {args.strategy}", flush=True)

    training.model.train()
    loss_of_step = torch.zeros((), device=ranks.device)
    started = time.time()
    logged_at, logged_step = time.perf_counter(), step
    while step < args.steps:
        for indices in sampler.epoch_batches():
            rate = learning_rate(args.learning_rate, step, args.steps)
            for group in training.optimizer.param_groups:
                group["lr"] = rate
            seen, following = windows.batch(tokens, indices, args.block_size)
            scores = training.model(seen.to(ranks.device))
            loss = functional.cross_entropy(scores.flatten(0, 1).float(), following.to(ranks.device).flatten())
            loss = loss * sampler.weight
            training.backward(loss)
            loss_of_step += loss.detach() / args.accumulate
            if not training.step():
                continue
            step += 1
            if step == 1 or step % LOG_EVERY == 0 or step == args.steps:
                mean = ranks.mean(loss_of_step).item()
                now = time.perf_counter()
                point = Point(step, mean, (now - logged_at) / (step - logged_step), peak_memory(ranks))
                logged_at, logged_step = now, step
                history.add(point)
                log(ranks, point, rate, args)
            loss_of_step.zero_()
            checkpoints.save_if_due(step)
            if step == args.steps:
                break

    checkpoints.save(step)
    weights = training.weights()
    measured_on = runtime.measured_on(ranks) | {"started": started, "ended": time.time()}
    if ranks.is_main:
        history.write(args.history, about | measured_on)
        save(args.model, weights, shape, (folder / TOKENIZER).read_text(encoding="utf-8"), description.end)
    ranks.barrier()


def check(args: argparse.Namespace) -> None:
    """Raise InputError if inputs that are valid by themselves do not fit together."""
    problems = []
    if args.width % args.heads:
        found = f"{args.heads} heads on a width of {args.width}"
        problems.append(Problem("input heads", found, "a divisor of the width", "change heads or width"))
    if args.batch_size % args.accumulate:
        found = f"a batch of {args.batch_size} sequences in {args.accumulate} passes"
        problems.append(
            Problem("input accumulate", found, "a divisor of batch_size", "change accumulate or batch_size")
        )
    if problems:
        raise InputError.of(problems)


def data(source: Path, block_size: int) -> tuple[Path, Description, NDArray[np.uint16]]:
    """Return the folder, the description and the training tokens, from a copy that an instance's ranks share."""
    try:
        folder = runtime.stage(source)
        description, tokens = read_description(folder), read_tokens(folder, "train")
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None
    if not windows.count(tokens, block_size):
        found = f"{len(tokens)} training tokens for a block_size of {block_size}"
        fix = "give a smaller block_size, or more text to prepare_text"
        raise InputError(Problem("input block_size", found, "at least one token more than a block", fix))
    return folder, description, tokens


def settings(args: argparse.Namespace) -> runtime.TrainingSettings:
    """Return the settings of the strategy. Raise InputError."""
    return runtime.TrainingSettings(
        gradient_accumulation_steps=args.accumulate,
        max_grad_norm=args.max_grad_norm,
        precision=args.precision,
        blocks=(Block,),
        activation_checkpointing=args.activation_checkpointing,
        zero_stage=args.zero_stage if args.strategy == "deepspeed" else None,
        offload=args.offload,
        deepspeed_config=args.deepspeed_config,
    )


def learning_rate(peak: float, step: int, total: int) -> float:
    """Return the learning rate: linear warm-up over the first tenth of the steps, then cosine decay to a tenth of the
    peak. It depends on the step alone, so that a resumed training has nothing to restore."""
    warm_up = max(1, total // 10)
    if step < warm_up:
        return peak * (step + 1) / warm_up
    return peak * (0.55 + 0.45 * math.cos(math.pi * (step - warm_up) / max(1, total - warm_up)))


def log(ranks: runtime.Ranks, point: Point, rate: float, args: argparse.Namespace) -> None:
    values = {
        "train_loss": point.loss,
        "learning_rate": rate,
        "tokens_per_second": args.batch_size * args.block_size / point.seconds,
        "step_seconds": point.seconds,
        "peak_memory_mib": point.peak_memory,
    }
    ranks.metrics.log(values, step=point.step, total=args.steps)
    if ranks.is_main:
        print(f"step {point.step} of {args.steps}: loss {point.loss:.4f}, {point.seconds:.3f} s a step", flush=True)


def peak_memory(ranks: runtime.Ranks) -> float:
    """Return the highest rank's peak memory in MiB: allocated on its GPU, or of its CPU process. A collective."""
    if ranks.device.type == "cuda":
        own = torch.cuda.max_memory_allocated(ranks.device) / 2**20
    else:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    most = torch.tensor(own)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return most.item()


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--resume_from", type=Path)
    parser.add_argument("--block_size", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--learning_rate", type=float, default=0.002)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--max_grad_norm", type=float, default=1.0)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--activation_checkpointing", type=boolean, default=False)
    parser.add_argument("--checkpoint_every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--zero_stage", type=int, default=2)
    parser.add_argument("--offload", type=boolean, default=False)
    parser.add_argument("--deepspeed_config", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True)
    return parser.parse_args()


def boolean(text: str) -> bool:
    return text.lower() == "true"


if __name__ == "__main__":
    runtime.main(train, strategy=arguments().strategy)
