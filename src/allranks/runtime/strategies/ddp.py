"""torch's DistributedDataParallel: every rank has a replica of the model, and gradients are averaged over the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed, nn, optim
from torch.nn.parallel import DistributedDataParallel

from allranks.runtime.settings import TrainingSettings, reject_unsupported
from allranks.runtime.strategies import checkpoint_state, recomputation
from allranks.runtime.strategies.bfloat16 import with_precision
from allranks.runtime.strategies.torch_training import TorchTraining


@dataclass(frozen=True)
class Ddp:
    """DistributedDataParallel on one device."""

    device: torch.device

    def prepare(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings | None = None
    ) -> DdpTraining:
        """Move the model to its device and wrap it in DistributedDataParallel. A collective."""
        settings = settings or TrainingSettings()
        reject_unsupported("ddp", settings, "offload", "deepspeed_config", "compression")
        model = model.to(self.device)
        if settings.activation_checkpointing:
            recomputation.recompute(model, settings.blocks)
        devices = [self.device.index] if self.device.type == "cuda" else None
        wrapped = DistributedDataParallel(with_precision(settings.precision, model, self.device), device_ids=devices)
        return DdpTraining(wrapped, model, optimizer, settings)


class DdpTraining(TorchTraining):
    """A training under DistributedDataParallel; see `Training`."""

    def weights(self) -> dict[str, Any]:
        """See `Training`."""
        return checkpoint_state.to_cpu(self._plain.state_dict()) if distributed.get_rank() == 0 else {}

    def state_dict(self) -> dict[str, Any]:
        """See `Training`."""
        return checkpoint_state.pack(
            "ddp",
            checkpoint_state.replicated_model(self._plain),
            checkpoint_state.replicated_optimizer(self.optimizer.state_dict()),
        )

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """See `Training`."""
        model, optimizer = checkpoint_state.unpack("ddp", state)
        self._plain.load_state_dict(model)
        self.optimizer.load_state_dict(optimizer)

    def _set_gradient_sync(self, enabled: bool) -> None:
        # As no_sync() does, which would also have to surround the forward pass in the training loop.
        assert isinstance(self.model, DistributedDataParallel)
        self.model.require_backward_grad_sync = enabled
