"""The precision "auto" is bfloat16 only where the GPU computes in it."""

from __future__ import annotations

import pytest
import torch

from allranks.runtime.settings import TrainingSettings
from allranks.runtime.strategies.precision import settled


@pytest.mark.parametrize(
    ("device", "has_bfloat16", "expected"),
    [("cuda", True, "bfloat16"), ("cuda", False, "float16"), ("cpu", True, "float32")],
)
def test_what_auto_stands_for(monkeypatch: pytest.MonkeyPatch, device: str, has_bfloat16: bool, expected: str) -> None:
    # torch counts the emulation of older GPUs as support unless it is told not to.
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation or has_bfloat16
    )
    settings = TrainingSettings(precision="auto", max_grad_norm=1.0)
    assert settled(settings, torch.device(device)) == TrainingSettings(precision=expected, max_grad_norm=1.0)


@pytest.mark.parametrize("given", [None, "float32", "bfloat16", "float16"])
def test_what_is_chosen_stays(given: str | None) -> None:
    settings = TrainingSettings(precision=given)
    assert settled(settings, torch.device("cuda")) is settings
