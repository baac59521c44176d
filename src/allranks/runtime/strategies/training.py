"""The interface of a strategy for a training loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from torch import Tensor, nn, optim
from torch.optim.lr_scheduler import LRScheduler

Schedule: TypeAlias = Callable[[optim.Optimizer], LRScheduler]
"""Creates the learning rate schedule of an optimizer."""


class Training(Protocol):
    """A model and its optimizer, distributed over the ranks.

        for images, labels in loader:
            training.backward(loss(training.model(images), labels) * loader.weight)
            if training.step():
                step += 1

    Every rank must make the same calls. This includes calls of the model, in training and in evaluation: the ranks of a
    sharded model gather parameters in the forward pass.
    """

    @property
    def model(self) -> nn.Module:
        """The module to call in the forward pass."""

    @property
    def module(self) -> nn.Module:
        """The model without what wraps it, for its methods and attributes. Its parameters are trained."""

    @property
    def optimizer(self) -> optim.Optimizer:
        """The torch optimizer that updates the weights. Its `param_groups` have the learning rates in use."""

    @property
    def schedule(self) -> LRScheduler | None:
        """The learning rate schedule that `step` steps; None without one."""

    @property
    def gradient_accumulation_steps(self) -> int:
        """Backward passes per optimizer step."""

    @property
    def per_device_train_batch_size(self) -> int | None:
        """Samples of a rank in a backward pass, from the settings or DeepSpeed's file, or None. The training loop must
        make batches of this size."""

    @property
    def precision(self) -> str:
        """The type that is computed in: "float32", "bfloat16" or "float16", also if the setting was "auto"."""

    @property
    def gradient_norm(self) -> Tensor | None:
        """L2 norm of the gradient of all parameters over all ranks in the last optimizer step, before it was clipped: a
        tensor without dimensions on the rank's device, the same on every rank. None before the first step, and if
        max_grad_norm is 0."""

    def backward(self, loss: Tensor) -> None:
        """Compute gradients of the loss, divided by the number of backward passes per step, and add them to the
        step's."""

    def step(self) -> bool:
        """Clip the gradients, step the optimizer and then the schedule, and set the gradients to zero, if the last
        backward pass completed a step.

        Return whether the optimizer took a step. In float16 it does not if a gradient of any rank is infinite or NaN:
        the gradients are dropped, the loss scale is halved, and the schedule stays where it is, on every rank. A loop
        that counts the steps that were taken needs nothing else. Raise FloatingPointError if the loss scale falls
        below 1, because then the loss itself is infinite or NaN. Under deepspeed, the section fp16 of its file says
        when the scale is halved and how low it falls, and DeepSpeed raises an Exception of its own.
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
