"""A small model trained under several strategies, one after another in one process group; rank 0 writes what came out.

strategies.py FOLDER save NAME ...      the first steps of every training, kept as a checkpoint
strategies.py FOLDER compare NAME ...   whole trainings, some that go on from those checkpoints, and variants
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from allranks import runtime
from allranks.runtime import strategies

STEPS = 50
KEPT, RESUMED = 10, 20
"""The step at which a checkpoint is made, and up to which a training goes on from it."""
BATCH, LENGTH, VOCABULARY, WIDTH = 8, 6, 19, 13
"""None of the widths divides by a number of ranks: shards are unequal."""


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.inner = nn.Linear(WIDTH, 3 * WIDTH)
        self.outer = nn.Linear(3 * WIDTH, WIDTH)

    def forward(self, hidden: Tensor) -> Tensor:
        result: Tensor = hidden + self.outer(functional.gelu(self.inner(self.norm(hidden))))
        return result


class Model(nn.Module):
    """Embedding and head share their weights, as language models' do, and there is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.tensor(0.7))

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.embedding(tokens)
        for block in self.blocks:
            hidden = block(hidden)
        scores: Tensor = self.head(hidden) * self.scale
        return scores


def batch(step: int) -> Tensor:
    return torch.randint(VOCABULARY, (BATCH, LENGTH), generator=torch.Generator().manual_seed(step))


def model_and_optimizer() -> tuple[Model, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Model()
    return model, torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    """Each token is followed by the one after it in the vocabulary."""
    return functional.cross_entropy(model(tokens).flatten(0, 1), ((tokens + 1) % VOCABULARY).flatten())


def mine(tokens: Tensor, ranks: runtime.Ranks) -> Tensor:
    return tokens.chunk(ranks.world_size)[ranks.rank]


def losses(training: Any, ranks: runtime.Ranks, first: int, last: int, accumulate: int = 1) -> list[float]:
    """The mean loss over the global batch of each backward pass."""
    found = []
    for step in range(first, last):
        for part in range(accumulate):
            loss = loss_of(training.model, mine(batch(step * accumulate + part), ranks))
            training.backward(loss)
            assert training.step() == (part == accumulate - 1)
            mean = loss.detach().clone()
            torch.distributed.all_reduce(mean)
            found.append(float(mean) / ranks.world_size)
    return found


def prepare(name: str, ranks: runtime.Ranks, settings: runtime.TrainingSettings) -> Any:
    if name.startswith("zero"):
        name, settings = "deepspeed", replace(settings, zero_stage=int(name.removeprefix("zero")))
    return strategies.strategy(name, ranks.device).prepare(*model_and_optimizer(), settings)


def compare(name: str, ranks: runtime.Ranks, folder: Path) -> dict[str, Any]:
    plain = runtime.TrainingSettings(blocks=(Block,))
    whole = prepare(name, ranks, plain)
    result: dict[str, Any] = {"whole": losses(whole, ranks, 0, RESUMED), "weights_then": listed(whole.weights())}
    result["whole"] += losses(whole, ranks, RESUMED, STEPS)
    result["weights"] = listed(whole.weights())
    resumed = prepare(name, ranks, plain)
    step = runtime.Checkpoints(folder / name, ranks, {"training": resumed}).load()
    result["resumed"] = losses(resumed, ranks, step, RESUMED)
    result["resumed_weights"] = listed(resumed.weights())
    clipped = prepare(name, ranks, replace(plain, gradient_accumulation_steps=2, max_grad_norm=0.05))
    for group in clipped.optimizer.param_groups:
        group["lr"] = 0.02
    losses(clipped, ranks, 0, 3, accumulate=2)
    result["clipped"] = listed(clipped.weights())
    recomputed = prepare(name, ranks, replace(plain, activation_checkpointing=True))
    result["recomputed"] = losses(recomputed, ranks, 0, 3)
    lower = prepare(name, ranks, replace(plain, precision="bfloat16"))
    result["bfloat16"] = losses(lower, ranks, 0, 10)
    if name == "fsdp" or name.startswith("zero"):
        result["offloaded"] = losses(prepare(name, ranks, replace(plain, offload=True)), ranks, 0, 3)
    if name == "horovod":
        result["compressed"] = losses(prepare(name, ranks, replace(plain, compression="fp16")), ranks, 0, 10)
    gathered = whole.weights()
    result["whole_on_main_alone"] = bool(gathered) == ranks.is_main
    return result


def listed(weights: dict[str, Tensor]) -> dict[str, list[float]]:
    return {name: value.flatten().tolist() for name, value in weights.items()}


def train(ranks: runtime.Ranks) -> None:
    folder, what, names = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    found = {}
    for name in names:
        if what == "save":
            training = prepare(name, ranks, runtime.TrainingSettings(blocks=(Block,)))
            checkpoints = runtime.Checkpoints(folder / name, ranks, {"training": training})
            found[name] = {"whole": losses(training, ranks, 0, KEPT)}
            checkpoints.save(KEPT)
        else:
            found[name] = compare(name, ranks, folder)
    if ranks.is_main:
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    runtime.main(train, strategy="horovod" if "horovod" in sys.argv else "ddp", timeout_seconds=60)
