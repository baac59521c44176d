"""Models that differ from rank to rank, sharded by fully_shard; every rank writes what it has then."""

import json
import sys
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.distributed.tensor import DTensor

from allranks import runtime


class Model(nn.Module):
    """Random weights, of which one is tied, and a random buffer, which two modules share."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.outer = nn.Linear(3, 3)
        self.outer.weight = self.inner.weight
        self.register_buffer("offset", torch.randn(3))
        self.inner.register_buffer("offset", self.offset)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.outer(self.inner(inputs)) + self.offset
        return outputs


def listed(model: nn.Module) -> dict[str, list[float]]:
    """Return the weights that this rank, or its group of ranks, has."""
    state = {
        name: each.full_tensor() if isinstance(each, DTensor) else each for name, each in model.state_dict().items()
    }
    return {name: each.flatten().tolist() for name, each in state.items()}


def prepare(ranks: runtime.Ranks, size: int | None, create: bool) -> Any:
    torch.manual_seed(ranks.rank)
    model = ranks.strategy.create(Model) if create else Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return ranks.strategy.prepare(model, optimizer, runtime.TrainingSettings(shard_group_size=size))


def train(ranks: runtime.Ranks) -> None:
    found: dict[str, Any] = {"weights": {}, "trained": {}, "drawn": {}}
    for size in (None, 1):
        for create in (False, True):
            training = prepare(ranks, size, create)
            kind = f"{size} {create}"
            found["drawn"][kind] = torch.rand(1).item()
            found["weights"][kind] = listed(training.module)
            training.backward(training.model(torch.full((2, 3), ranks.rank + 1.0)).square().mean())
            training.step()
            found["trained"][kind] = listed(training.module)
    mesh = training.module.inner.weight.device_mesh
    groups = [distributed.group.WORLD, *(mesh.get_group(dimension) for dimension in range(mesh.ndim))]
    found["timeouts"] = [group._get_backend(ranks.device).options._timeout.total_seconds() for group in groups]
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    runtime.main(train, strategy="fsdp", timeout_seconds=60)
