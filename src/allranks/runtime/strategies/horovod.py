"""Horovod's DistributedOptimizer: every rank has a replica of the model, and MPI or gloo averages the gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn, optim

from allranks.runtime.settings import TrainingSettings, reject_unsupported
from allranks.runtime.strategies import horovod_launch
from allranks.runtime.strategies.precision import settled, with_precision
from allranks.runtime.strategies.preparation import transform
from allranks.runtime.strategies.torch_training import ReplicatedTraining
from allranks.runtime.strategies.training import Schedule

_numbers = itertools.count()
"""Numbers of the trainings, the same on every rank. Horovod identifies a gradient by its name, and two models may have
the same names."""


@dataclass(frozen=True)
class Horovod:
    """Horovod beside torch's process group. Horovod uses its own connections for gradients."""

    device: torch.device

    def __post_init__(self) -> None:
        horovod_launch.initialise()

    def create(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Return the model that `build` returns: every rank has all of it."""
        return build()

    def prepare(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        settings: TrainingSettings | None = None,
        schedule: Schedule | None = None,
    ) -> HorovodTraining:
        """Move the model to its device, broadcast rank 0's weights, and wrap the optimizer in Horovod's. A
        collective."""
        import horovod.torch as hvd

        settings = settled(settings or TrainingSettings(), self.device)
        reject_unsupported("horovod", settings, "find_unused_parameters", "static_graph", "gradient_as_bucket_view")
        reject_unsupported("horovod", settings, "shard_group_size", "deepspeed_stage", "offload", "deepspeed_config")
        model, blocks = transform(model, settings, self.device)
        model = model.to(self.device)
        if settings.compile and not blocks:
            model.compile()
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        if optimizer.state:
            # If the state is empty, Horovod creates it with an optimizer step, which decays the weights and counts as a
            # step.
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        number = next(_numbers)
        distributed = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=((f"{number}.{name}", parameter) for name, parameter in model.named_parameters()),
            compression=getattr(hvd.Compression, settings.compression),
            backward_passes_per_step=settings.gradient_accumulation_steps or 1,
        )
        wrapped = with_precision(settings.precision, model, self.device)
        return HorovodTraining(wrapped, model, distributed, settings, schedule, self.device)


class HorovodTraining(ReplicatedTraining):
    """A training with Horovod's optimizer; see `Training`."""

    _strategy = "horovod"
    optimizer: Any

    def _update(self) -> bool:
        if not self._max_grad_norm and self._loss_scale is None:
            return super()._update()
        self.optimizer.synchronize()  # clip and check the averaged gradients, not this rank's
        with self.optimizer.skip_synchronize():
            return super()._update()
