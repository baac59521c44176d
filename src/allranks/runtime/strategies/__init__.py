"""How a model is spread over the ranks: the one table that a new strategy is added to."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import torch
from torch import nn, optim

from allranks.errors import InputError, Problem
from allranks.runtime.settings import Settings
from allranks.runtime.strategies.training import Training

__all__ = ["STRATEGIES", "Strategy", "Training", "check", "strategy"]


class Strategy(Protocol):
    """What a strategy does to a model."""

    def prepare(self, model: nn.Module, optimizer: optim.Optimizer, settings: Settings | None = None) -> Training:
        """Return the model on this rank's device, and the optimizer made of its parameters, ready for a loop. A
        collective.

        The optimizer is a new one, with nothing in its state. Raise InputError for settings that the strategy has
        nothing for.
        """


@dataclass(frozen=True)
class Entry:
    """A strategy's module and class below this package, the library that it needs, and what installs that."""

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
    """Raise InputError where there is no strategy of this name, or its library is not installed."""
    if name not in STRATEGIES:
        names = ", ".join(sorted(STRATEGIES))
        raise InputError(Problem("strategy", repr(name), f"one of {names}", "give one of these names"))
    entry = STRATEGIES[name]
    if find_spec(entry.library) is None:
        raise InputError(Problem(f"strategy {name}", f"{entry.library} is not installed", fix=entry.install))


def strategy(name: str, device: torch.device) -> Strategy:
    """Return the strategy of a name, with its library set up on the process group that is up. Raises what `check`
    raises."""
    check(name)
    entry = STRATEGIES[name]
    module: Any = import_module(f"{__name__}.{entry.module}")
    made: Strategy = getattr(module, entry.name)(device)
    return made
