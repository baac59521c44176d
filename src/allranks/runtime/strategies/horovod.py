"""Horovod's DistributedOptimizer: every rank has a replica of the model, and MPI or gloo averages the gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn, optim

from allranks.runtime.settings import TrainingSettings, reject_unsupported
from allranks.runtime.strategies import checkpoint_state, horovod_launch, recomputation
from allranks.runtime.strategies.accumulation import Accumulation
from allranks.runtime.strategies.bfloat16 import with_precision


@dataclass(frozen=True)
class Horovod:
    """Horovod beside torch's process group. Horovod uses its own connections for gradients."""

    device: torch.device

    def __post_init__(self) -> None:
        horovod_launch.initialise()

    def prepare(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings | None = None
    ) -> HorovodTraining:
        """Move the model to its device, broadcast rank 0's weights, and wrap the optimizer in Horovod's. A
        collective."""
        import horovod.torch as hvd

        settings = settings or TrainingSettings()
        reject_unsupported("horovod", settings, "offload", "deepspeed_config")
        model = model.to(self.device)
        if settings.activation_checkpointing:
            recomputation.recompute(model, settings.blocks)
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        if optimizer.state:
            # If the state is empty, Horovod creates it with an optimizer step, which decays the weights and counts as a
            # step.
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        distributed = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=model.named_parameters(),
            compression=getattr(hvd.Compression, settings.compression),
            backward_passes_per_step=settings.gradient_accumulation_steps,
        )
        return HorovodTraining(with_precision(settings.precision, model, self.device), model, distributed, settings)


class HorovodTraining:
    """A training with Horovod's optimizer; see `Training`."""

    def __init__(self, model: nn.Module, plain: nn.Module, optimizer: Any, settings: TrainingSettings) -> None:
        self.model = model
        self.optimizer: optim.Optimizer = optimizer
        self._horovod = optimizer
        self._plain = plain
        self._clip_norm = settings.clip_norm
        self._accumulation = Accumulation(settings.gradient_accumulation_steps)

    def backward(self, loss: Tensor) -> None:
        """See `Training`."""
        torch.autograd.backward(self._accumulation.share(loss))

    def step(self) -> bool:
        """See `Training`."""
        complete = self._accumulation.count()
        if complete:
            if self._clip_norm is None:
                self._horovod.step()
            else:
                self._horovod.synchronize()  # clip the averaged gradients, not this rank's
                nn.utils.clip_grad_norm_(self._plain.parameters(), self._clip_norm)
                with self._horovod.skip_synchronize():
                    self._horovod.step()
            self._horovod.zero_grad()
        return complete

    def weights(self) -> dict[str, Any]:
        """See `Training`."""
        return checkpoint_state.to_cpu(self._plain.state_dict()) if torch.distributed.get_rank() == 0 else {}

    def state_dict(self) -> dict[str, Any]:
        """See `Training`."""
        return checkpoint_state.pack(
            "horovod",
            checkpoint_state.replicated_model(self._plain),
            checkpoint_state.replicated_optimizer(self._horovod.state_dict()),
        )

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """See `Training`."""
        model, optimizer = checkpoint_state.unpack("horovod", state)
        self._plain.load_state_dict(model)
        self._horovod.load_state_dict(optimizer)
