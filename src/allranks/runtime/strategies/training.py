"""The interface of a strategy for a training loop."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor, nn, optim


class Training(Protocol):
    """A model and its optimizer, distributed over the ranks.

        for images, labels in sampler.epoch_batches(loader):
            training.backward(loss(training.model(images), labels) * sampler.weight)
            if training.step():
                step += 1

    Every rank must make the same calls. This includes calls of the model, in training and in evaluation: the ranks of a
    sharded model gather parameters in the forward pass.
    """

    @property
    def model(self) -> nn.Module:
        """The module to call in the forward pass."""

    @property
    def optimizer(self) -> optim.Optimizer:
        """The optimizer. Learning rate schedules change its `param_groups`."""

    def backward(self, loss: Tensor) -> None:
        """Compute gradients of the loss, divided by the number of backward passes per step, and add them to the
        step's."""

    def step(self) -> bool:
        """Clip the gradients, step the optimizer and set the gradients to zero, if the last backward pass completed a
        step.

        Return whether it did.
        """

    def weights(self) -> dict[str, Any]:
        """Return the full state dict of the unwrapped model, on the CPU, on rank 0; {} on other ranks. A collective."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint: this rank's part of it. The whole does not depend on the number of ranks.

        Gradients of an incomplete step are not saved. Call it after `step` has returned True. The tensors are the
        training's own, which the next step changes.
        """

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Load a state from a checkpoint. Every rank must pass the same whole state: of tensors, or, if the training
        has `reads_saved_tensors = True`, of SavedTensors, from which it reads its shards. A collective.

        Raise InputError if another strategy saved it.
        """
