"""Strategies that distribute a model over the ranks. A new strategy is one file and one entry in `STRATEGIES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import torch
from torch import nn, optim

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.settings import TrainingSettings
from allranks.runtime.strategies.training import Schedule, Training

__all__ = ["STRATEGIES", "Schedule", "Strategy", "Training", "check", "strategy"]


class Strategy(Protocol):
    """A strategy on one device."""

    def create(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Build a model so that it never exists whole on a rank, if the strategy shards its weights (fsdp, and
        deepspeed with ZeRO 3). Other strategies call `build` and return its model.

            model = ranks.strategy.create(lambda: Gpt(shape))
            training = ranks.strategy.prepare(model, torch.optim.AdamW(model.parameters()), settings)

        The returned model is on the meta device. `prepare` repeats what `build` did to each tensor, on the CPU, one
        tensor after another, and keeps this rank's shard of it. So the weights are the ones that `build` gives an
        ordinary model with the same seed, whatever the number of ranks. `build` may also load a state dict, which is
        best mapped into memory: `model.load_state_dict(torch.load(path, mmap=True))`.

        `build` must be the same on every rank. Raise InputError if it reads values of the model's tensors, which the
        meta device does not have.
        """

    def prepare(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        settings: TrainingSettings | None = None,
        schedule: Schedule | None = None,
    ) -> Training:
        """Move the model to this rank's device, wrap the model and its optimizer, and return them for a training loop.
        A collective.

        optimizer: a new one, with an empty state, of the model's parameters
        schedule:  function that returns one of torch's learning rate schedules of the optimizer that it is given;
                   `step` of the training steps it

        A loop with several models prepares each of them with its own optimizer. If one model trains through another,
        as a generator through its discriminator, freeze the other with `requires_grad_(False)`, and call the module
        that was passed to `prepare`, not `training.model`, which averages gradients that are not needed.

        Raise InputError for settings that the strategy does not support.
        """


@dataclass(frozen=True)
class Entry:
    """A strategy's module and class in this package, the library that it needs, and the command that installs it."""

    module: str
    name: str
    library: str = "torch"
    install: str = 'pip install "allranks[torch]"'


STRATEGIES = {
    "ddp": Entry("ddp", "Ddp"),
    "fsdp": Entry("fsdp", "Fsdp"),
    "deepspeed": Entry("deepspeed", "DeepSpeed", "deepspeed", 'pip install "allranks[deepspeed]"'),
    "horovod": Entry("horovod", "Horovod", "horovod", "make horovod"),
}


def check(name: str) -> None:
    """Raise InputError if there is no strategy of this name, or its library is not installed."""
    if name not in STRATEGIES:
        names = ", ".join(sorted(STRATEGIES))
        raise InputError(Problem("strategy", repr(name), f"one of {names}", "use one of these names"))
    entry = STRATEGIES[name]
    if find_spec(entry.library) is None:
        found = f"{entry.library} is not installed"
        raise InputError(Problem(f"strategy {name}", found, fix=entry.install, code="missing-package"))


def strategy(name: str, device: torch.device) -> Strategy:
    """Return the strategy of a name, with its library initialised. The process group must be initialised. Raise
    InputError as `check` does."""
    check(name)
    entry = STRATEGIES[name]
    module: Any = import_module(f"{__name__}.{entry.module}")
    created: Strategy = getattr(module, entry.name)(device)
    return created
