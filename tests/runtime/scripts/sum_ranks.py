"""Every rank adds itself to the sum and prints it."""

import os
import sys

import torch
from torch import distributed

from allranks import runtime


def train(ranks: runtime.Ranks) -> None:
    total = torch.tensor([ranks.rank + 1])
    distributed.all_reduce(total)
    model = torch.nn.Linear(2, 1)
    training = ranks.strategy.prepare(model, torch.optim.SGD(model.parameters()))
    training.backward(training.model(torch.full((1, 2), float(ranks.rank))).sum())
    gradient = model.weight.grad
    place = f"{ranks.rank} {ranks.world_size} {ranks.local_rank} {ranks.instance_rank} {ranks.launcher}"
    figures = f"{int(total)} {float(gradient[0, 0])} {os.environ.get('GLOO_SOCKET_IFNAME')}"
    sys.stdout.write(f"{place} {figures}\n")  # in one piece: under torchrun the ranks share it


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=float(sys.argv[1]) if len(sys.argv) > 1 else 60)
