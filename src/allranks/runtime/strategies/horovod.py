"""Horovod's DistributedOptimizer: every rank holds the whole model, gradients are averaged by MPI or gloo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn, optim

from allranks.runtime.settings import Settings
from allranks.runtime.strategies import horovod_launch, recomputation, states, unsupported
from allranks.runtime.strategies.accumulation import Accumulation
from allranks.runtime.strategies.bfloat16 import computing_in


@dataclass(frozen=True)
class Horovod:
    """Horovod beside torch's process group: it sends gradients by its own means."""

    device: torch.device

    def __post_init__(self) -> None:
        horovod_launch.initialise()

    def prepare(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: Settings | None = None
    ) -> HorovodTraining:
        """Return the model on its device with rank 0's weights, and the optimizer in Horovod's. A collective."""
        import horovod.torch as hvd

        settings = settings or Settings()
        unsupported.refuse("horovod", settings, "offload", "deepspeed_config")
        model = model.to(self.device)
        if settings.activation_checkpointing:
            recomputation.recompute(model, settings.blocks)
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        if optimizer.state:
            # Of a new optimizer it would make the state by a step, which decays the weights and counts as the first.
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        distributed = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=model.named_parameters(),
            compression=getattr(hvd.Compression, settings.compression),
            backward_passes_per_step=settings.accumulate,
        )
        return HorovodTraining(computing_in(settings.precision, model, self.device), model, distributed, settings)


class HorovodTraining:
    """What a training loop calls; see `Training`."""

    def __init__(self, model: nn.Module, plain: nn.Module, optimizer: Any, settings: Settings) -> None:
        self.model = model
        self.optimizer: optim.Optimizer = optimizer
        self._horovod = optimizer
        self._plain = plain
        self._clip_norm = settings.clip_norm
        self._accumulation = Accumulation(settings.accumulate)

    def backward(self, loss: Tensor) -> None:
        """See `Training`."""
        torch.autograd.backward(loss / self._accumulation.passes)

    def step(self) -> bool:
        """See `Training`."""
        complete = self._accumulation.count()
        if complete:
            if self._clip_norm is None:
                self._horovod.step()
            else:
                self._horovod.synchronize()  # what is clipped are the averaged gradients, not this rank's
                nn.utils.clip_grad_norm_(self._plain.parameters(), self._clip_norm)
                with self._horovod.skip_synchronize():
                    self._horovod.step()
            self._horovod.zero_grad()
        return complete

    def weights(self) -> dict[str, Any]:
        """See `Training`."""
        return states.on_cpu(self._plain.state_dict()) if torch.distributed.get_rank() == 0 else {}

    def state_dict(self) -> dict[str, Any]:
        """See `Training`."""
        return states.pack("horovod", self._plain.state_dict(), self._horovod.state_dict())

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """See `Training`."""
        model, optimizer = states.unpack("horovod", state)
        self._plain.load_state_dict(model)
        self._horovod.load_state_dict(optimizer)
