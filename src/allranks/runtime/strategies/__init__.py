"""How a model is spread over the ranks: the one table that a new strategy is added to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import nn

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.ddp import Ddp


class Strategy(Protocol):
    """What a strategy does to a model."""

    def prepare(self, model: nn.Module, **options: Any) -> nn.Module:
        """The model on this rank's device, ready for an ordinary loop; options go to the library that does it."""

    def unwrap(self, model: nn.Module) -> nn.Module:
        """The model that was prepared, as it was given: for saving it and for scoring."""


STRATEGIES: dict[str, Callable[[torch.device], Strategy]] = {"ddp": Ddp}


def strategy(name: str, device: torch.device) -> Strategy:
    """The strategy of a name. Raises InputError where there is none."""
    if name not in STRATEGIES:
        names = ", ".join(sorted(STRATEGIES))
        raise InputError(Problem("strategy", repr(name), f"one of {names}", "give one of these names"))
    return STRATEGIES[name](device)
