"""A deterministic training by the runtime: python training.py STRATEGY. It logs its loss."""

from __future__ import annotations

import sys

import torch
from torch.nn import functional

from allranks import runtime


def train(ranks: runtime.Ranks) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    training = ranks.strategy.prepare(model, torch.optim.SGD(model.parameters(), lr=0.05))
    generator = torch.Generator().manual_seed(ranks.rank)
    for step in range(1, 6):
        features = torch.randn(4, 8, generator=generator)
        loss = functional.mse_loss(training.model(features), features.sum(1, keepdim=True))
        training.backward(loss)
        training.step()
        ranks.metrics.log({"loss": loss}, step=step, total=5)
        print(f"rank {ranks.rank} of {ranks.world_size} step {step} loss {loss.item():.6f}")


if __name__ == "__main__":
    runtime.main(train, strategy=sys.argv[1])
