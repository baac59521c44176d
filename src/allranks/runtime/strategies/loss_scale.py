"""Loss scaling for float16, by torch's GradScaler."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, optim


class LossScale:
    """torch's GradScaler for one optimizer, which also tells whether a step was skipped.

    All ranks scale by the same factor, and skip the same steps: averaged gradients are the same on every rank, and for
    the shards of a gradient torch reduces over the ranks whether one is infinite or NaN.
    """

    def __init__(self, optimizer: optim.Optimizer, device: torch.device) -> None:
        self._optimizer = optimizer
        self._scaler = torch.amp.GradScaler(device.type)
        self._stepped = False
        optimizer.register_step_pre_hook(self._before_step)

    def scale(self, loss: Tensor) -> Tensor:
        """Return the loss multiplied by the scale."""
        return self._scaler.scale(loss)

    def unscale(self) -> None:
        """Divide the optimizer's gradients by the scale."""
        self._scaler.unscale_(self._optimizer)

    def step(self) -> bool:
        """Step the optimizer unless a gradient is infinite or NaN, and update the scale. Return whether it stepped.

        Raise FloatingPointError if the scale falls below 1.
        """
        self._stepped = False
        self._scaler.step(self._optimizer)
        self._scaler.update()
        if not self._stepped and self._scaler.get_scale() < 1:
            raise FloatingPointError(
                "gradients are infinite or NaN at every loss scale down to 1: the loss diverges, or the model needs the"
                " range of bfloat16 or float32"
            )
        return self._stepped

    def state_dict(self) -> dict[str, Any]:
        """Return the scaler's state: numbers."""
        return self._scaler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the scaler's state."""
        self._scaler.load_state_dict(state)

    def _before_step(self, optimizer: optim.Optimizer, *_: Any) -> None:
        # GradScaler skips the call of most optimizers. Fused ones are called, and read this tensor.
        found_inf = getattr(optimizer, "found_inf", None)
        self._stepped = found_inf is None or not found_inf.item()
