"""The backward pass and the step of strategies whose gradients torch itself averages: DDP and FSDP."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn, optim

from allranks.runtime.settings import Settings
from allranks.runtime.strategies.accumulation import Accumulation


class TorchTraining(ABC):
    """model: what the loop calls. plain: the module whose parameters the optimizer has."""

    def __init__(self, model: nn.Module, plain: nn.Module, optimizer: optim.Optimizer, settings: Settings) -> None:
        self.model = model
        self.optimizer = optimizer
        self._plain = plain
        self._clip_norm = settings.clip_norm
        self._accumulation = Accumulation(settings.accumulate)
        self._send_gradients(self._accumulation.is_last)

    def backward(self, loss: Tensor) -> None:
        """See `Training`."""
        torch.autograd.backward(loss / self._accumulation.passes)

    def step(self) -> bool:
        """See `Training`."""
        complete = self._accumulation.count()
        if complete:
            if self._clip_norm is not None:
                nn.utils.clip_grad_norm_(self._plain.parameters(), self._clip_norm)
            self.optimizer.step()
            self.optimizer.zero_grad()
        self._send_gradients(self._accumulation.is_last)
        return complete

    @abstractmethod
    def _send_gradients(self, wanted: bool) -> None:
        """Say whether the next backward pass averages the gradients over the ranks."""
