"""Compute in bfloat16, float16 or TF32, with float32 weights and outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from allranks.runtime.strategies.settings import AUTO, TrainingSettings

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
"""The 16-bit types by the names that the settings have for them."""


def automatic(device: torch.device) -> str:
    """Return the precision that "auto" stands for on a device.

    bfloat16 on GPUs that compute in it, float16 with a loss scale on older ones (V100, T4), float32 on the CPU.
    """
    if device.type != "cuda":
        return "float32"
    # torch emulates bfloat16 on older GPUs, slower than float32.
    return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"


def settled(settings: TrainingSettings, device: torch.device) -> TrainingSettings:
    """Return the settings with the precision that "auto" stands for on the device."""
    return replace(settings, precision=automatic(device)) if settings.precision == AUTO else settings


class LowPrecision(nn.Module):
    """A model under autocast. Its outputs are float32, so that the loss is computed in full precision."""

    def __init__(self, model: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self._device_type = device.type
        self._dtype = dtype

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return the model's outputs, with 16-bit tensors converted to float32."""
        with torch.autocast(self._device_type, dtype=self._dtype):
            outputs = self.model(*inputs, **options)
        return tree_map(_widened, outputs)


def with_precision(precision: str | None, model: nn.Module, device: torch.device) -> nn.Module:
    """Return the model under autocast if the precision is a 16-bit type, else the model itself."""
    return LowPrecision(model, device, DTYPES[precision]) if precision in DTYPES else model


def allow_tf32() -> None:
    """Let float32 matrix products and convolutions use TF32, in the whole process."""
    torch.set_float32_matmul_precision("high")


def _widened(value: object) -> object:
    return value.float() if isinstance(value, Tensor) and value.dtype in DTYPES.values() else value
