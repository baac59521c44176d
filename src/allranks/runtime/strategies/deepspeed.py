"""DeepSpeed's ZeRO: the optimizer's state, gradients and weights sharded by stages."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed, nn, optim

from allranks.runtime.settings import Settings
from allranks.runtime.strategies import deepspeed_config, recomputation, states, unsupported, zero_states
from allranks.runtime.strategies.bfloat16 import computing_in


@dataclass(frozen=True)
class DeepSpeed:
    """DeepSpeed on torch's process group, which is up already: it looks for no launcher of its own."""

    device: torch.device

    def __post_init__(self) -> None:
        import deepspeed.ops

        if self.device.type == "cpu":
            # DeepSpeed's own all-reduce works where its launcher has set LOCAL_SIZE, but every rank would build or load
            # it, and wait for the others' lock. Set before DeepSpeed asks a compiler about each of its operations.
            deepspeed.ops.__compatible_ops__ = {}
        # torch tells DeepSpeed so at every collective of every step.
        warnings.filterwarnings("ignore", message=r"`torch\.distributed\.\w+` is deprecated", category=FutureWarning)

    def prepare(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: Settings | None = None
    ) -> DeepSpeedTraining:
        """Return the model and its optimizer in DeepSpeed's engine. A collective.

        The optimizer is the loop's own, an ordinary one of torch, so that no operation has to be compiled; where the
        configuration has one, that one is taken.
        """
        import deepspeed

        settings = settings or Settings()
        unsupported.refuse("deepspeed", settings, "compression")
        config = deepspeed_config.configuration(settings, distributed.get_world_size(), self.device)
        if settings.activation_checkpointing:
            recomputation.recompute(model, settings.blocks)
        lower = settings.precision == "bfloat16" or deepspeed_config.enabled(config, "bf16")
        own = "optimizer" in config
        engine, *_ = deepspeed.initialize(
            model=computing_in("bfloat16" if lower else "float32", model.to(self.device), self.device),
            optimizer=None if own else optimizer,
            model_parameters=[parameter for parameter in model.parameters() if parameter.requires_grad],
            config=config,
            dist_init_required=False,
        )
        return DeepSpeedTraining(engine, model)


class DeepSpeedTraining:
    """What a training loop calls; see `Training`."""

    def __init__(self, engine: Any, plain: nn.Module) -> None:
        self.model: nn.Module = engine
        self._engine = engine
        self._plain = plain

    @property
    def optimizer(self) -> optim.Optimizer:
        """DeepSpeed's, around the loop's own: its `param_groups` are what is stepped with."""
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
        return states.pack("deepspeed", zero_states.weights(self._plain), zero_states.gather(self._engine, self._plain))

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """See `Training`."""
        weights, optimizer = states.unpack("deepspeed", state)
        zero_states.scatter(self._engine, self._plain, weights, optimizer)
