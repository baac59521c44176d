"""DeepSpeed's ZeRO: the optimizer's state, gradients and weights are sharded, depending on the stage."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import deepspeed
import deepspeed.ops
import torch
from deepspeed.runtime.config import DeepSpeedConfig, DeepSpeedConfigError
from torch import Tensor, distributed, nn, optim
from torch.optim.lr_scheduler import LRScheduler

from allranks.errors import InputError, Problem
from allranks.runtime.strategies import deepspeed_config, preparation, training, zero_states
from allranks.runtime.strategies.deepspeed_config import Configuration, configuration
from allranks.runtime.strategies.preparation import transform, with_precision
from allranks.runtime.strategies.settings import TrainingSettings
from allranks.runtime.strategies.training import Schedule, Strategy, create_schedule
from allranks.runtime.tensors import full


class DeepSpeed(Strategy):
    """DeepSpeed on torch's process group, which is already initialised."""

    name = "deepspeed"
    unsupported = ("find_unused_parameters", "shard_group_size")

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        # Without a launcher, there is one rank. DeepSpeed reads its rank only from the environment.
        for name, value in (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1")):
            os.environ.setdefault(name, value)
        if self.device.type == "cpu":
            # DeepSpeed's own all-reduce needs LOCAL_SIZE from its launcher, and every rank would build or load it and
            # wait for the others' lock. Disabled before DeepSpeed tests the compiler for each of its operations.
            deepspeed.ops.__compatible_ops__ = {}
        # DeepSpeed causes this warning in every collective of every step.
        warnings.filterwarnings("ignore", message=r"`torch\.distributed\.\w+` is deprecated", category=FutureWarning)

    def create(self, build: Callable[[], nn.Module]) -> nn.Module:
        """Return the model that `build` returns, with values on rank 0 only, until `prepare`."""
        return preparation.create(build)

    def _distribute(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings, schedule: Schedule | None
    ) -> DeepSpeedTraining:
        """Create DeepSpeed's engine for the model and its optimizer. A collective.

        The optimizer is the loop's own torch optimizer, so that no operation has to be compiled. If DeepSpeed's
        configuration has an optimizer or a scheduler, that one replaces the loop's.
        """
        config = configuration(settings, optimizer, distributed.get_world_size(), self.device)
        values = dict(config.values)
        if config.deepspeed_stage == 0:
            values["gradient_clipping"] = 0.0  # clipped by the training, because the engine drops the norm
        _check(values, settings.deepspeed_config)
        if settings.compile and config.deepspeed_stage == 3:
            found = "with ZeRO stage 3"
            expected = "ZeRO 0 to 2: stage 3 gathers the weights of each layer in hooks, which split its graph"
            raise InputError(Problem("compile", found, expected, "omit compile, or use the strategy fsdp"))
        is_created = preparation.is_created(model)
        model, blocks = transform(model, settings, self.device)
        if is_created:  # the engine broadcasts parameters that are not sharded
            shard = _sharding(values) if config.deepspeed_stage == 3 else lambda _: None
            preparation.move_parameters(model, "cpu", shard)
            preparation.broadcast_buffers(model, self.device)
        model = model.to(self.device)
        if settings.compile and not blocks:
            model.compile()
        replaced = "optimizer" in values
        engine, *_ = deepspeed.initialize(
            model=with_precision(config.precision, model, self.device),
            optimizer=None if replaced else optimizer,
            model_parameters=deepspeed_config.optimizer_parameters(optimizer),
            config=values,
            lr_scheduler=None if schedule is None or "scheduler" in values else partial(create_schedule, schedule),
            dist_init_required=False,
        )
        return DeepSpeedTraining(engine, model, config, self.device)


def _check(values: dict[str, Any], path: str | Path | None) -> None:
    """Raise InputError if DeepSpeed refuses the configuration."""
    try:
        DeepSpeedConfig(values)
    except (AssertionError, ValueError, TypeError, DeepSpeedConfigError) as error:
        raise InputError(Problem(f"deepspeed_config {path}", str(error), "a file that DeepSpeed accepts")) from None


def _sharding(values: dict[str, Any]) -> Callable[[nn.Parameter], None]:
    """Return a function that shards rank 0's values of a parameter as ZeRO 3 does. A collective."""
    first: list[Any] = []

    def shard(parameter: nn.Parameter) -> None:
        if not first:
            holder = nn.Module()
            holder.parameter = parameter
            deepspeed.zero.Init(module=holder, config_dict_or_path=values)
            first.append(parameter)
        else:
            first[0].convert_to_zero_parameters(param_list=[parameter])

    return shard


class DeepSpeedTraining:
    """A training with DeepSpeed's engine; see `Training`."""

    reads_saved_tensors = True

    def __init__(self, engine: Any, module: nn.Module, config: Configuration, device: torch.device) -> None:
        self.model: nn.Module = engine
        self.gradient_norm: Tensor | None = None
        self.gradient_accumulation_steps = config.gradient_accumulation_steps
        self.per_device_train_batch_size = config.per_device_train_batch_size
        self.precision = config.precision
        self._engine = engine
        self.module = module
        self._config = config
        self._device = device

    @property
    def optimizer(self) -> optim.Optimizer:
        """See `Training`. ZeRO's optimizer, which is not a torch optimizer, wraps it."""
        optimizer: optim.Optimizer = getattr(self._engine.optimizer, "optimizer", self._engine.optimizer)
        return optimizer

    @property
    def schedule(self) -> LRScheduler | None:
        """See `Training`. DeepSpeed's own classes have the same methods."""
        schedule: LRScheduler | None = self._engine.lr_scheduler
        return schedule

    def backward(self, loss: Tensor, weight: float = 1.0) -> None:
        self._engine.backward(loss if weight == 1 else loss * weight)

    def step(self) -> bool:
        norm: Any = None
        measured = self._config.max_grad_norm > 0
        if measured and self._config.deepspeed_stage == 0 and self._engine.is_gradient_accumulation_boundary():
            norm = nn.utils.clip_grad_norm_(self.module.parameters(), self._config.max_grad_norm)
        self._engine.step()
        stepped: bool = self._engine.was_step_applied()
        if stepped and measured:
            norm = self._engine.get_global_grad_norm() if norm is None else norm
            self.gradient_norm = torch.as_tensor(norm, dtype=torch.float32, device=self._device)
        return stepped

    def weights(self) -> dict[str, Any]:
        return zero_states.weights(self.module)

    def state_dict(self) -> dict[str, Any]:
        state = training.pack("deepspeed", *zero_states.gather(self._engine, self.module))
        return state if self.schedule is None else state | {"schedule": self.schedule.state_dict()}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        weights, optimizer = training.unpack("deepspeed", state)
        zero_states.scatter(self._engine, self.module, weights, optimizer)
        if self.schedule is not None:
            self.schedule.load_state_dict(full(state["schedule"]))
