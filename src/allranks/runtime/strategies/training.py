"""A model and its optimizer under a strategy: what a training loop calls."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor, nn, optim


class Training(Protocol):
    """A model and its optimizer, spread over the ranks.

        for images, labels in sampler.track(loader):
            training.backward(loss(training.model(images), labels) * sampler.weight)
            if training.step():
                step += 1

    Every rank makes the same calls. That goes for the model too, in training as in evaluation: a sharded model's ranks
    fetch each other's parameters in the forward pass.
    """

    @property
    def model(self) -> nn.Module:
        """What is called forward."""

    @property
    def optimizer(self) -> optim.Optimizer:
        """Its `param_groups` take what a schedule writes."""

    def backward(self, loss: Tensor) -> None:
        """Add a loss's gradients to those of this step, divided by the number of passes that make a step."""

    def step(self) -> bool:
        """Change the weights where this was a step's last backward pass, and tell whether it was.

        Clips, steps the optimizer, and makes the gradients zero.
        """

    def weights(self) -> dict[str, Any]:
        """Return the plain model's state_dict, whole, on the CPU: on rank 0, and an empty one on the others. A
        collective."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps: the same for every number of ranks. Whole on rank 0 alone. A collective.

        Gradients of a step that is not complete are not kept: call it after `step` has returned True.
        """

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Take a whole state on, which every rank is given. A collective.

        Raise InputError if another strategy made it.
        """
