"""A small training on handwritten digits: prints each step's loss over the global batch, exactly."""

import argparse
import os
import signal
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import distributed
from torch.nn import functional
from torch.utils.data import TensorDataset

from allranks import runtime


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--checkpoints", type=Path)
    parser.add_argument("--every-steps", type=int)
    parser.add_argument("--sigterm-at", type=int, help="the last rank is asked to end after this step")
    return parser.parse_args()


def train(ranks: runtime.Ranks) -> None:
    args = arguments()
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    dataset = TensorDataset(
        torch.tensor(images[: args.samples], dtype=torch.float32) / 16, torch.tensor(labels[: args.samples])
    )
    layers = [torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Dropout(args.dropout), torch.nn.Linear(32, 10)]
    model = torch.nn.Sequential(*layers)
    training = ranks.strategy.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    torch.manual_seed(ranks.rank)  # each rank drops other neurons
    sampler = runtime.ResumableSampler(len(dataset), ranks, batch_size=args.batch_size, seed=1)
    loader = runtime.DataLoader(dataset, sampler, num_workers=args.workers)
    step = 0
    if args.checkpoints:
        parts = {"training": training, "loader": loader}
        checkpoints = runtime.Checkpoints(args.checkpoints, ranks, parts, every_steps=args.every_steps)
        step = checkpoints.load()

    while step < args.steps:
        for pixels, digits in loader:
            loss = functional.cross_entropy(training.model(pixels), digits) * loader.weight
            training.backward(loss)
            training.step()
            step += 1
            mean = loss.detach().clone()
            distributed.all_reduce(mean)
            if ranks.is_main:
                print(step, (float(mean) / ranks.world_size).hex(), flush=True)
            if step == args.sigterm_at and ranks.rank == ranks.world_size - 1:
                os.kill(os.getpid(), signal.SIGTERM)
            if args.checkpoints:
                checkpoints.save_if_due(step)
            if step == args.steps:
                break


if __name__ == "__main__":
    runtime.main(train)
