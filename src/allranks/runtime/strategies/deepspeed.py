"""DeepSpeed's ZeRO: the optimizer's state, gradients and weights are sharded, depending on the stage."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn, optim

from allranks.runtime.settings import TrainingSettings, reject_unsupported
from allranks.runtime.strategies import checkpoint_state, deepspeed_config, recomputation, zero_states
from allranks.runtime.strategies.bfloat16 import with_precision


@dataclass(frozen=True)
class DeepSpeed:
    """DeepSpeed on torch's process group, which is already initialised."""

    device: torch.device

    def __post_init__(self) -> None:
        import deepspeed.ops

        if self.device.type == "cpu":
            # DeepSpeed's own all-reduce needs LOCAL_SIZE from its launcher, and every rank would build or load it and
            # wait for the others' lock. Disabled before DeepSpeed tests the compiler for each of its operations.
            deepspeed.ops.__compatible_ops__ = {}
        # DeepSpeed causes this warning in every collective of every step.
        warnings.filterwarnings("ignore", message=r"`torch\.distributed\.\w+` is deprecated", category=FutureWarning)

    def prepare(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings | None = None
    ) -> DeepSpeedTraining:
        """Create DeepSpeed's engine for the model and its optimizer. A collective.

        The optimizer is the loop's own torch optimizer, so that no operation has to be compiled. If DeepSpeed's
        configuration has an optimizer, that one replaces it.
        """
        import deepspeed

        settings = settings or TrainingSettings()
        reject_unsupported("deepspeed", settings, "compression")
        config = deepspeed_config.configuration(settings, distributed.get_world_size(), self.device)
        if settings.activation_checkpointing:
            recomputation.recompute(model, settings.blocks)
        in_bfloat16 = settings.precision == "bfloat16" or deepspeed_config.enabled(config, "bf16")
        config_has_optimizer = "optimizer" in config
        engine, *_ = deepspeed.initialize(
            model=with_precision("bfloat16" if in_bfloat16 else "float32", model.to(self.device), self.device),
            optimizer=None if config_has_optimizer else optimizer,
            model_parameters=[parameter for parameter in model.parameters() if parameter.requires_grad],
            config=config,
            dist_init_required=False,
        )
        return DeepSpeedTraining(engine, model)


class DeepSpeedTraining:
    """A training with DeepSpeed's engine; see `Training`."""

    reads_saved_tensors = True

    def __init__(self, engine: Any, plain: nn.Module) -> None:
        self.model: nn.Module = engine
        self._engine = engine
        self._plain = plain

    @property
    def optimizer(self) -> optim.Optimizer:
        """DeepSpeed's optimizer, which wraps the loop's own. Its `param_groups` are the ones that are used."""
        optimizer: optim.Optimizer = self._engine.optimizer
        return optimizer

    def backward(self, loss: Tensor) -> None:
        """See `Training`."""
        self._engine.backward(loss)

    def step(self) -> bool:
        """See `Training`."""
        complete: bool = self._engine.is_gradient_accumulation_boundary()
        self._engine.step()
        return complete

    def weights(self) -> dict[str, Any]:
        """See `Training`."""
        return zero_states.weights(self._plain)

    def state_dict(self) -> dict[str, Any]:
        """See `Training`."""
        return checkpoint_state.pack("deepspeed", *zero_states.gather(self._engine, self._plain))

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """See `Training`."""
        weights, optimizer = checkpoint_state.unpack("deepspeed", state)
        zero_states.scatter(self._engine, self._plain, weights, optimizer)
