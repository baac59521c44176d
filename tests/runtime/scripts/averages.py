"""Average the weights of a small model under several strategies, one after another in one process group.

averages.py FOLDER STRATEGY ...    rank 0 writes what it found to FOLDER/STRATEGY.pt
"""

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from allranks import runtime
from allranks.runtime import strategies

DECAY = 0.6
STEPS = 4


class Model(nn.Module):
    """Tied weights, a frozen parameter, BatchNorm's buffers, and sizes that no number of ranks divides."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(7, 7, bias=False)
        self.norm = nn.BatchNorm1d(7)
        self.last = nn.Linear(7, 7)
        self.last.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(5), requires_grad=False)

    def forward(self, inputs: Tensor) -> Tensor:
        result: Tensor = self.last(self.norm(self.first(inputs))) * self.frozen.sum()
        return result


def train(ranks: runtime.Ranks) -> None:
    for name in sys.argv[2:]:
        found = averages(ranks, name)
        if ranks.is_main:
            torch.save(found, Path(sys.argv[1]) / f"{name}.pt")


def averages(ranks: runtime.Ranks, name: str) -> dict[str, Any]:
    torch.manual_seed(0)
    model = Model()
    optimizer = torch.optim.SGD([value for value in model.parameters() if value.requires_grad], lr=0.1)
    strategy = strategies.strategy(name, ranks.device)
    training = strategy.prepare(model, optimizer, runtime.TrainingSettings())
    average = runtime.ExponentialMovingAverage(training, DECAY)
    history = [training.weights()]
    inputs = torch.randn(6, 7, generator=torch.Generator().manual_seed(ranks.rank))
    for _ in range(STEPS):
        training.backward(training.model(inputs).square().mean())
        training.step()
        average.update()
        history.append(training.weights())
    found = {"history": history, "weights": average.weights()}
    training.model.eval()
    probe = torch.ones(2, 7)
    with torch.no_grad():
        found["before"] = training.model(probe)
        with average.averaged():
            found["within"] = training.model(probe)
            found["exported"] = training.weights()
        found["after"] = training.model(probe)
    found["restored"] = training.weights()
    saved = average.state_dict()
    full = {key: whole(value) for key, value in saved["averages"].items()}
    other = runtime.ExponentialMovingAverage(training, DECAY)
    other.load_state_dict({"updates": saved["updates"], "averages": full})
    found["loaded"] = other.weights()
    return found


def whole(value: Any) -> Tensor:
    """As a checkpoint gives it back."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value.clone()


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
