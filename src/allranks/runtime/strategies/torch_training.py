"""Backward pass and optimizer step of the strategies whose gradients torch averages: DDP and FSDP."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn, optim

from allranks.runtime.settings import TrainingSettings
from allranks.runtime.strategies.accumulation import Accumulation


class TorchTraining(ABC):
    """Base class of DdpTraining and FsdpTraining.

    model: the module to call in the forward pass
    plain: the module whose parameters the optimizer has
    """

    def __init__(
        self, model: nn.Module, plain: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self._plain = plain
        self._clip_norm = settings.clip_norm
        self._accumulation = Accumulation(settings.gradient_accumulation_steps)
        self._set_gradient_sync(self._accumulation.is_last)

    def backward(self, loss: Tensor) -> None:
        """See `Training`."""
        torch.autograd.backward(self._accumulation.share(loss))

    def step(self) -> bool:
        """See `Training`."""
        complete = self._accumulation.count()
        if complete:
            if self._clip_norm is not None:
                nn.utils.clip_grad_norm_(self._plain.parameters(), self._clip_norm)
            self.optimizer.step()
            self.optimizer.zero_grad()
        if self._accumulation.passes > 1:  # otherwise every pass is the last; under FSDP this visits every module
            self._set_gradient_sync(self._accumulation.is_last)
        return complete

    @abstractmethod
    def _set_gradient_sync(self, enabled: bool) -> None:
        """Enable or disable gradient synchronisation for the next backward pass."""
