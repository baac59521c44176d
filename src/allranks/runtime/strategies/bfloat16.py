"""Run a model in bfloat16 with float32 weights and outputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map


class Bfloat16(nn.Module):
    """A model under autocast. Its outputs are float32, so that the loss is computed in full precision."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        super().__init__()
        self.model = model
        self._device_type = device.type

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return the model's outputs, with bfloat16 tensors converted to float32."""
        with torch.autocast(self._device_type, dtype=torch.bfloat16):
            outputs = self.model(*inputs, **options)
        return tree_map(_widened, outputs)


def with_precision(precision: str, model: nn.Module, device: torch.device) -> nn.Module:
    """Return the model under autocast if precision is "bfloat16", else the model itself."""
    return Bfloat16(model, device) if precision == "bfloat16" else model


def _widened(value: object) -> object:
    return value.float() if isinstance(value, Tensor) and value.dtype == torch.bfloat16 else value
