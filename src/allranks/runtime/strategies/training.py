"""The interface between a training loop and a strategy, and common functions of strategies."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeAlias

import torch
from torch import Tensor, nn, optim
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.settings import TrainingSettings, reject_unsupported
from allranks.runtime.tensors import replicated

Schedule: TypeAlias = Callable[[optim.Optimizer], LRScheduler]
"""Creates the learning rate schedule of an optimizer."""


class Training(Protocol):
    """A model and its optimizer, distributed over the ranks.

        for images, labels in loader:
            training.backward(loss(training.model(images), labels), loader.weight)
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

    def backward(self, loss: Tensor, weight: float = 1.0) -> None:
        """Add the gradients of the loss times the weight, divided by the backward passes per step, to the step's.

        weight: that of this rank's batch, `weight` of its loader or sampler; 1.0 adds no operation
        """

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
        """Load a state from a checkpoint, the same on every rank. In place of tensors, it has SavedTensors if the
        training has `reads_saved_tensors = True`: it reads its shards from them. A collective.

        Raise InputError if another strategy saved it.
        """


class Strategy(ABC):
    """Distributes models over the ranks. A subclass defines `_distribute`.

    name:        the key in `STRATEGIES`
    unsupported: names of the settings that it does not support
    device:      device of this rank's tensors
    """

    name: ClassVar[str]
    unsupported: ClassVar[tuple[str, ...]] = ()

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def create(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Build a model with values on rank 0 only, if the strategy shards its weights (fsdp and deepspeed). Other
        strategies call `build` and return its model.

            model = ranks.strategy.create(lambda: Gpt(shape))
            training = ranks.strategy.prepare(model, torch.optim.AdamW(model.parameters()), settings)

        Rank 0 builds the model in host memory. The other ranks build it on the meta device, without values, and
        `prepare` sends each rank its shard of rank 0's, one tensor after another. So the weights are the ones that
        `build` gives an ordinary model with rank 0's seed, whatever the number of ranks, and no device has the whole
        model. `build` may also load a state dict, which is best mapped into memory:
        `model.load_state_dict(torch.load(path, mmap=True))`.

        Raise InputError if `build` reads values of the model's tensors, which the meta device does not have.
        """
        return build()

    def prepare(
        self,
        model: nn.Module,
        optimizer: optim.Optimizer,
        settings: TrainingSettings | None = None,
        schedule: Schedule | None = None,
    ) -> Training:
        """Move the model to this rank's device, wrap the model and its optimizer, and return them for a training loop.
        A collective.

        optimizer: a new one, with an empty state, of the model's parameters
        schedule:  function that returns one of torch's learning rate schedules of the optimizer that it is given;
                   `step` of the training steps it

        A loop with several models prepares each of them with its own optimizer. If one model trains through another,
        as a generator through its discriminator, freeze the other with `requires_grad_(False)`, and call the module
        that was passed to `prepare`, not `training.model`, which averages gradients that are not needed.

        Raise InputError for settings that the strategy does not support.
        """
        settings = settings or TrainingSettings()
        reject_unsupported(self.name, settings, *self.unsupported)
        return self._distribute(model, optimizer, settings, schedule)

    @abstractmethod
    def _distribute(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings, schedule: Schedule | None
    ) -> Training:
        """Prepare a model and its optimizer as `prepare` does. The settings are supported. A collective."""


def create_schedule(schedule: Schedule | None, optimizer: optim.Optimizer) -> LRScheduler | None:
    """Return the schedule of an optimizer, or None without one.

    Raise InputError if it is not a function, or does not return one of torch's schedulers that count steps.
    """
    if schedule is None:
        return None
    if not callable(schedule):
        raise _refused(f"a {type(schedule).__qualname__}")
    created: object = schedule(optimizer)
    if isinstance(created, ReduceLROnPlateau) or not isinstance(created, LRScheduler):
        raise _refused(f"a function that returns a {type(created).__qualname__}")
    return created


def _refused(found: str) -> InputError:
    expected = "a function that takes the optimizer, and returns a scheduler that needs no metric"
    fix = "use for example: lambda optimizer: CosineAnnealingLR(optimizer, steps)"
    return InputError(Problem("schedule", found, expected, fix))


def pack(strategy: str, model: dict[str, Any], optimizer: dict[str, Any]) -> dict[str, Any]:
    """Return one state dict with both states and the strategy's name."""
    return {"strategy": strategy, "model": model, "optimizer": optimizer}


def unpack(strategy: str, state: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the model's and the optimizer's state. Raise InputError if another strategy saved them."""
    if state["strategy"] != strategy:
        expected = f"a checkpoint of the strategy {strategy}: the format of the optimizer's state differs"
        fix = f"resume with {state['strategy']}, or use a folder without its checkpoints"
        raise InputError(Problem("checkpoint", f"saved with the strategy {state['strategy']}", expected, fix))
    return state["model"], state["optimizer"]


def replicated_model(model: nn.Module) -> dict[str, Any]:
    """Return the state dict of a model of which every rank has the same parameters, and saves a share.

    Buffers are rank 0's, from which DistributedDataParallel broadcasts them too."""
    state = model.state_dict()
    for name in dict(model.named_parameters(remove_duplicate=False)).keys() & state.keys():
        state[name] = replicated(state[name])
    return state


def replicated_optimizer(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state dict of an optimizer of which every rank has the same, and saves a share.

    Of an optimizer with another layout, such as one of DeepSpeed's for half precision, rank 0 saves all."""
    if "state" not in state:
        return state
    tensors = {
        parameter: {
            key: replicated(value) if isinstance(value, Tensor) and value.dim() else value
            for key, value in values.items()
        }
        for parameter, values in state["state"].items()
    }
    return {**state, "state": tensors}


def to_cpu(weights: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with all tensors on the CPU. Later training steps do not change it."""
    return {
        name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
        for name, value in weights.items()
    }
