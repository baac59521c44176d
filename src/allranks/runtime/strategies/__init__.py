"""Strategies that distribute a model over the ranks. A new strategy is one file and one entry in `STRATEGIES`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from allranks.errors import InputError, Problem

if TYPE_CHECKING:  # the settings of a training need no torch
    import torch

    from allranks.runtime.strategies.training import Strategy


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
    """Raise InputError for an unknown name, or if the strategy's library is not installed."""
    if name not in STRATEGIES:
        names = ", ".join(sorted(STRATEGIES))
        raise InputError(Problem("strategy", repr(name), f"one of {names}", "use one of these names"))
    entry = STRATEGIES[name]
    if find_spec(entry.library) is None:
        found = f"{entry.library} is not installed"
        raise InputError(Problem(f"strategy {name}", found, fix=entry.install, code="missing-package"))


def strategy(name: str, device: torch.device) -> Strategy:
    """Return the strategy of a name, on the initialised process group. Raise InputError as `check` does."""
    check(name)
    entry = STRATEGIES[name]
    module: Any = import_module(f"{__name__}.{entry.module}")  # which imports the library
    created: Strategy = getattr(module, entry.name)(device)
    return created
