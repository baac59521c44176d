"""Backward pass and optimizer step of the strategies that use a torch optimizer: DDP, FSDP and Horovod."""

from typing import Any

import torch
from torch import Tensor, distributed, nn, optim

from allranks.runtime.strategies import training
from allranks.runtime.strategies.settings import TrainingSettings
from allranks.runtime.strategies.training import Schedule, create_schedule
from allranks.runtime.tensors import full


class TorchTraining:
    """Base class of ReplicatedTraining and FsdpTraining; see `Training`.

    model:  the module to call in the forward pass
    module: the module whose parameters the optimizer has
    """

    def __init__(
        self,
        model: nn.Module,
        module: nn.Module,
        optimizer: optim.Optimizer,
        settings: TrainingSettings,
        schedule: Schedule | None,
        device: torch.device,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.schedule = create_schedule(schedule, optimizer)
        self.gradient_norm: Tensor | None = None
        self.per_device_train_batch_size = settings.per_device_train_batch_size
        self.precision = settings.precision or "float32"
        self.module = module
        self._device = device
        self._max_grad_norm = settings.max_grad_norm
        self._loss_scale = _LossScale(optimizer, device) if settings.precision == "float16" else None
        self.gradient_accumulation_steps = settings.backward_passes
        self._passes = 0  # backward passes since the start, or since a state was loaded
        self._set_gradient_sync(self.gradient_accumulation_steps == 1)

    def backward(self, loss: Tensor, weight: float = 1.0) -> None:
        factor = weight / self.gradient_accumulation_steps
        if factor != 1:  # a product would be an operation in both passes
            loss = loss * factor
        torch.autograd.backward(loss if self._loss_scale is None else self._loss_scale.scaler.scale(loss))

    def step(self) -> bool:
        self._passes += 1
        if self.gradient_accumulation_steps == 1:  # nothing changes; FSDP would visit every module
            return self._update()
        stepped = self._passes % self.gradient_accumulation_steps == 0 and self._update()
        self._set_gradient_sync((self._passes + 1) % self.gradient_accumulation_steps == 0)
        return stepped

    def _update(self) -> bool:
        """Clip the gradients, step the optimizer and the schedule, zero the gradients. Return whether it stepped."""
        norm = None
        if self._max_grad_norm:
            if self._loss_scale is not None:
                self._loss_scale.scaler.unscale_(self.optimizer)
            norm = self._clip(self._max_grad_norm)
        if self._loss_scale is None:
            self.optimizer.step()
            stepped = True
        else:
            stepped = self._loss_scale.step()
        self.optimizer.zero_grad()
        if stepped:
            self.gradient_norm = norm
            if self.schedule is not None:
                self.schedule.step()
        return stepped

    def _clip(self, max_norm: float) -> Tensor:
        """Clip the gradients, and return their norm before clipping."""
        return nn.utils.clip_grad_norm_(self.module.parameters(), max_norm)

    def _set_gradient_sync(self, enabled: bool) -> None:
        """Enable or disable gradient synchronisation for the next backward pass."""

    def _drop_gradients(self) -> None:
        """Set the gradients of an incomplete step to zero."""
        self.optimizer.zero_grad()

    def _progress(self) -> dict[str, Any]:
        """Return the state of the schedule and of the loss scale, for the training's state dict."""
        state: dict[str, Any] = {}
        if self.schedule is not None:
            state["schedule"] = self.schedule.state_dict()
        if self._loss_scale is not None:
            state["loss_scale"] = self._loss_scale.scaler.state_dict()
        return state

    def _load_progress(self, state: dict[str, Any]) -> None:
        """Load what `_progress` returned, with or without a SavedTensor in place of each tensor, and begin a step."""
        state = full({name: state[name] for name in ("schedule", "loss_scale") if name in state})
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        if self._loss_scale is not None and "loss_scale" in state:
            self._loss_scale.scaler.load_state_dict(state["loss_scale"])
        self._drop_gradients()
        self._passes = 0
        self._set_gradient_sync(self.gradient_accumulation_steps == 1)


class ReplicatedTraining(TorchTraining):
    """Base class of DdpTraining and HorovodTraining, whose ranks all have the whole model and optimizer."""

    strategy: str

    def weights(self) -> dict[str, Any]:
        return training.to_cpu(self.module.state_dict()) if distributed.get_rank() == 0 else {}

    def state_dict(self) -> dict[str, Any]:
        state = training.pack(
            self.strategy,
            training.replicated_model(self.module),
            training.replicated_optimizer(self.optimizer.state_dict()),
        )
        return state | self._progress()

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        model, optimizer = training.unpack(self.strategy, state)
        self.module.load_state_dict(model)
        self.optimizer.load_state_dict(optimizer)
        self._load_progress(state)


class _LossScale:
    """torch's GradScaler for one optimizer, which also returns whether a step was skipped.

    All ranks scale by the same factor, and skip the same steps: averaged gradients are the same on every rank, and for
    the shards of a gradient torch reduces over the ranks whether one is infinite or NaN.
    """

    def __init__(self, optimizer: optim.Optimizer, device: torch.device) -> None:
        self._optimizer = optimizer
        self.scaler = torch.amp.GradScaler(device.type)
        self._stepped = False
        optimizer.register_step_pre_hook(self._before_step)

    def step(self) -> bool:
        """Step the optimizer unless a gradient is infinite or NaN, and update the scale. Return whether it stepped.

        Raise FloatingPointError if the scale falls below 1.
        """
        self._stepped = False
        self.scaler.step(self._optimizer)
        self.scaler.update()
        if not self._stepped and self.scaler.get_scale() < 1:
            raise FloatingPointError(
                "gradients are infinite or NaN at every loss scale down to 1: the loss diverges, or the model needs the"
                " range of bfloat16 or float32"
            )
        return self._stepped

    def _before_step(self, optimizer: optim.Optimizer, *_: Any) -> None:
        # GradScaler skips the call of most optimizers. Fused ones are called, and read this tensor.
        found_inf = getattr(optimizer, "found_inf", None)
        self._stepped = found_inf is None or not found_inf.item()
