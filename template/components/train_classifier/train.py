"""Train the network on all ranks: two instances with two processes each, or one process."""

import argparse
from pathlib import Path

import torch
from network import network
from torch.nn import functional
from torch.utils.data import TensorDataset

from allranks import runtime


def train(ranks: runtime.Ranks) -> None:
    data = torch.load(args.points / "train.pt")
    torch.manual_seed(args.seed)
    model = network()
    training = ranks.strategy.prepare(model, torch.optim.AdamW(model.parameters(), lr=args.learning_rate))
    dataset = TensorDataset(data["points"], data["classes"])
    sampler = runtime.ResumableSampler(len(dataset), ranks, batch_size=args.batch_size, seed=args.seed)
    loader = runtime.DataLoader(dataset, sampler)
    parts = {"training": training, "loader": loader}
    checkpoints = runtime.Checkpoints(args.checkpoints, ranks, parts, every_steps=100)
    step = checkpoints.load()
    total = args.epochs * len(loader)

    for epoch in range(loader.epoch, args.epochs):
        for points, classes in loader:
            loss = functional.cross_entropy(training.model(points), classes)
            training.backward(loss, loader.weight)
            training.step()
            step += 1
            checkpoints.save_if_due(step)
        ranks.metrics.log({"train_loss": loss.item()}, step=step, total=total, epoch=epoch)
        if ranks.is_main:
            print(f"epoch {epoch + 1} of {args.epochs}: loss {loss.item():.4f}", flush=True)

    checkpoints.save(step)
    weights = training.weights()
    if ranks.is_main:
        args.model.mkdir(parents=True, exist_ok=True)
        torch.save(weights, args.model / "model.pt")
    ranks.barrier()


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--points", type=Path, required=True)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--batch_size", type=int, default=100)
parser.add_argument("--learning_rate", type=float, default=0.01)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--model", type=Path, required=True)
parser.add_argument("--checkpoints", type=Path, required=True)

if __name__ == "__main__":
    args = parser.parse_args()
    runtime.main(train)
