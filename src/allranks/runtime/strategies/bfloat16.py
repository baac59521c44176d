"""Computing in bfloat16 within a model whose weights and outputs stay in float32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map


class Bfloat16(nn.Module):
    """A model under autocast. Its outputs are float32, so that a loss is not computed in eight bits of precision."""

    def __init__(self, model: nn.Module, device: torch.device) -> None:
        super().__init__()
        self.model = model
        self._device_type = device.type

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return what the model gives, with every bfloat16 tensor in it as float32."""
        with torch.autocast(self._device_type, dtype=torch.bfloat16):
            outputs = self.model(*inputs, **options)
        return tree_map(_widened, outputs)


def computing_in(precision: str, model: nn.Module, device: torch.device) -> nn.Module:
    """Return the model itself for "float32", the model under autocast for "bfloat16"."""
    return Bfloat16(model, device) if precision == "bfloat16" else model


def _widened(value: object) -> object:
    return value.float() if isinstance(value, Tensor) and value.dtype == torch.bfloat16 else value
