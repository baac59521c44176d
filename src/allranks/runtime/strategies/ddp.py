"""torch's DistributedDataParallel: every rank holds the whole model, gradients are averaged over the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed, nn, optim
from torch.nn.parallel import DistributedDataParallel

from allranks.runtime.settings import Settings
from allranks.runtime.strategies import recomputation, states, unsupported
from allranks.runtime.strategies.bfloat16 import computing_in
from allranks.runtime.strategies.torch_training import TorchTraining


@dataclass(frozen=True)
class Ddp:
    """DistributedDataParallel on one device."""

    device: torch.device

    def prepare(self, model: nn.Module, optimizer: optim.Optimizer, settings: Settings | None = None) -> DdpTraining:
        """Return the model on its device under DistributedDataParallel, and its optimizer. A collective."""
        settings = settings or Settings()
        unsupported.refuse("ddp", settings, "offload", "deepspeed_config", "compression")
        model = model.to(self.device)
        if settings.activation_checkpointing:
            recomputation.recompute(model, settings.blocks)
        devices = [self.device.index] if self.device.type == "cuda" else None
        wrapped = DistributedDataParallel(computing_in(settings.precision, model, self.device), device_ids=devices)
        return DdpTraining(wrapped, model, optimizer, settings)


class DdpTraining(TorchTraining):
    """What a training loop calls; see `Training`."""

    def weights(self) -> dict[str, Any]:
        """See `Training`."""
        return states.on_cpu(self._plain.state_dict()) if distributed.get_rank() == 0 else {}

    def state_dict(self) -> dict[str, Any]:
        """See `Training`."""
        return states.pack("ddp", self._plain.state_dict(), self.optimizer.state_dict())

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """See `Training`."""
        model, optimizer = states.unpack("ddp", state)
        self._plain.load_state_dict(model)
        self.optimizer.load_state_dict(optimizer)

    def _send_gradients(self, wanted: bool) -> None:
        # What no_sync() does, which has to surround the forward pass as well: that one is the loop's own.
        assert isinstance(self.model, DistributedDataParallel)
        self.model.require_backward_grad_sync = wanted
