"""A small model trained under several strategies, one after another in one process group; rank 0 writes what came out:
of whole trainings, and of variants.

strategies.py NAME ...
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from allranks import runtime
from allranks.runtime import strategies

STEPS = 20
KEPT = 10
"""The step at which a checkpoint is made."""
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


def model_and_optimizer(
    build: Callable[[], nn.Module] = Model,
    create: Callable[[Callable[[], nn.Module]], nn.Module] | None = None,
) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = create(build) if create else build()
    return model, torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    """Each token is followed by the one after it in the vocabulary."""
    return functional.cross_entropy(model(tokens).flatten(0, 1), ((tokens + 1) % VOCABULARY).flatten())


def mine(tokens: Tensor, ranks: runtime.Ranks) -> Tensor:
    return tokens.chunk(ranks.world_size)[ranks.rank]


def losses(training: Any, ranks: runtime.Ranks, first: int, last: int) -> list[float]:
    """The mean loss over the global batch of each step."""
    found = []
    for step in range(first, last):
        loss = loss_of(training.model, mine(batch(step), ranks))
        training.backward(loss)
        assert training.step()
        mean = loss.detach().clone()
        torch.distributed.all_reduce(mean)
        found.append(float(mean) / ranks.world_size)
    return found


def prepare(
    name: str,
    ranks: runtime.Ranks,
    settings: runtime.TrainingSettings,
    build: Callable[[], nn.Module] = Model,
    create: bool = False,
) -> Any:
    if name.startswith("zero"):
        name, settings = "deepspeed", replace(settings, deepspeed_stage=int(name.removeprefix("zero")))
    strategy = strategies.strategy(name, ranks.device)
    return strategy.prepare(*model_and_optimizer(build, strategy.create if create else None), settings)


def generator() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))


def discriminator() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def two_models(name: str, ranks: runtime.Ranks | None = None, steps: int = 4) -> list[float]:
    """The losses of a generative adversarial network, by a strategy or by a loop without one."""
    trainings: list[Any] = []
    plain: list[nn.Module] = []

    def keep(build: Callable[[], nn.Module]) -> nn.Module:
        plain.append(build())
        return plain[-1]

    for build in (generator, discriminator):
        built = partial(keep, build)
        if ranks is None:
            trainings.append(Alone(*model_and_optimizer(built)))
        else:
            trainings.append(prepare(name, ranks, runtime.TrainingSettings(), built))
    making, judging = trainings
    found = []
    for step in range(steps):
        random = torch.Generator().manual_seed(step)
        real, noise = torch.randn(BATCH, 4, generator=random), torch.randn(BATCH, 3, generator=random)
        if ranks is not None:
            real, noise = mine(real, ranks), mine(noise, ranks)
        scores = judging.model(torch.cat([real, making.model(noise).detach()]))
        losses = [functional.softplus(torch.cat([-scores[: len(real)], scores[len(real) :]])).mean()]
        judging.backward(losses[0])
        judging.step()
        # The unwrapped discriminator, with its weights frozen: its own gradients must not be averaged.
        plain[1].requires_grad_(False)
        losses.append(functional.softplus(-plain[1](making.model(noise))).mean())
        making.backward(losses[1])
        making.step()
        plain[1].requires_grad_(True)
        means = torch.stack(losses).detach()
        if ranks is not None:
            torch.distributed.all_reduce(means)
            means /= ranks.world_size
        found += means.tolist()
    return found


class Alone:
    """A training without a strategy."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def backward(self, loss: Tensor) -> None:
        loss.backward()

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()


def compare(name: str, ranks: runtime.Ranks) -> dict[str, Any]:
    plain = runtime.TrainingSettings(blocks=(Block,))
    whole = prepare(name, ranks, plain)
    result: dict[str, Any] = {"whole": losses(whole, ranks, 0, STEPS), "weights_then": listed(whole.weights())}
    recomputed = prepare(name, ranks, replace(plain, activation_checkpointing=True))
    result["recomputed"] = losses(recomputed, ranks, 0, 3)
    lower = prepare(name, ranks, replace(plain, precision="bfloat16"))
    result["bfloat16"] = losses(lower, ranks, 0, 10)
    if name in ("fsdp", "zero3"):
        result["offloaded"] = losses(prepare(name, ranks, replace(plain, offload=True)), ranks, 0, 3)
    result |= resume(name, ranks, plain)
    if name == "fsdp":
        groups = prepare(name, ranks, replace(plain, shard_group_size=2))
        result["in_groups"] = losses(groups, ranks, 0, 3)
    result["created"] = listed(prepare(name, ranks, plain, create=True).weights())
    result["two_models"] = two_models(name, ranks)
    gathered = whole.weights()
    result["whole_on_main_alone"] = bool(gathered) == ranks.is_main
    return result


def resume(name: str, ranks: runtime.Ranks, settings: runtime.TrainingSettings) -> dict[str, Any]:
    with TemporaryDirectory() as own:
        folder = ranks.broadcast(own)
        training = prepare(name, ranks, settings)
        checkpoints = runtime.Checkpoints(folder, ranks, {"training": training})
        losses(training, ranks, 0, KEPT)
        checkpoints.save(KEPT)
        resumed = prepare(name, ranks, settings)
        step = runtime.Checkpoints(folder, ranks, {"training": resumed}).load()
        found = {"resumed": losses(resumed, ranks, step, STEPS), "resumed_weights": listed(resumed.weights())}
        ranks.barrier()
    return found


def listed(weights: dict[str, Tensor]) -> dict[str, list[float]]:
    return {name: value.flatten().tolist() for name, value in weights.items()}


def train(ranks: runtime.Ranks) -> None:
    found = {name: compare(name, ranks) for name in sys.argv[1:]}
    if ranks.is_main:
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    runtime.main(train, strategy="horovod" if "horovod" in sys.argv else "ddp", timeout_seconds=60)
