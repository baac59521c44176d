"""torch's DistributedDataParallel: every rank has a replica of the model, and gradients are averaged over the ranks."""

from __future__ import annotations

from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel

from allranks.runtime.strategies.preparation import transform, with_automatic_precision, with_precision
from allranks.runtime.strategies.settings import TrainingSettings
from allranks.runtime.strategies.torch_training import ReplicatedTraining
from allranks.runtime.strategies.training import Schedule, Strategy


class Ddp(Strategy):
    """DistributedDataParallel on one device."""

    name = "ddp"
    unsupported = ("shard_group_size", "deepspeed_stage", "offload", "deepspeed_config")

    def _distribute(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings, schedule: Schedule | None
    ) -> DdpTraining:
        """Move the model to its device and wrap it in DistributedDataParallel. A collective."""
        settings = with_automatic_precision(settings, self.device)
        model, blocks = transform(model, settings, self.device)
        model = model.to(self.device)
        wrapped = DistributedDataParallel(
            with_precision(settings.precision, model, self.device),
            device_ids=[self.device.index] if self.device.type == "cuda" else None,
            find_unused_parameters=settings.find_unused_parameters,
        )
        if not settings.find_unused_parameters:
            _build_final_buckets(wrapped)
        if settings.compile and not blocks:
            wrapped.compile()  # outside, so that torch splits the graph where a bucket of gradients is complete
        return DdpTraining(wrapped, model, optimizer, settings, schedule, self.device)


def _build_final_buckets(wrapped: DistributedDataParallel) -> None:
    """Run a backward pass of zeros to determine the buckets of gradients. A collective.

    DistributedDataParallel otherwise builds its final buckets after its first step, by the order in which gradients
    arrive. The order in which gloo and NCCL add the gradients of several ranks depends on the buckets, so that the
    first step after a resume would differ from the same step of an uninterrupted training.
    """
    weights = [weight for weight in wrapped.module.parameters() if weight.requires_grad]
    wrapped.reducer.prepare_for_forward()
    wrapped.reducer.prepare_for_backward([])
    # Backward passes go from what was computed last to what was computed first, as those of a model do.
    sum((weight.flatten()[:1] * 0).sum() for weight in weights).backward()
    for weight in weights:
        weight.grad = None


class DdpTraining(ReplicatedTraining):
    """A training under DistributedDataParallel; see `Training`."""

    strategy = "ddp"

    def _set_gradient_sync(self, enabled: bool) -> None:
        # As no_sync() does, which would also have to surround the forward pass in the training loop.
        assert isinstance(self.model, DistributedDataParallel)
        self.model.require_backward_grad_sync = enabled
