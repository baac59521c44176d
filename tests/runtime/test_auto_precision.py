"""The precision "auto" is bfloat16 only where the GPU computes in it."""

import json
from pathlib import Path

import pytest
import torch

from allranks.runtime.strategies import deepspeed_config, preparation
from allranks.runtime.strategies.deepspeed_file import DeepSpeedFile, read
from allranks.runtime.strategies.preparation import with_automatic_precision
from allranks.runtime.strategies.settings import TrainingSettings


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
    assert with_automatic_precision(settings, torch.device(device)) == TrainingSettings(
        precision=expected, max_grad_norm=1.0
    )


def deepspeed_file(tmp_path: Path, content: object) -> DeepSpeedFile:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps(content))
    return read(path)


ON, OFF, AUTO = ({"enabled": enabled} for enabled in (True, False, "auto"))


@pytest.mark.parametrize(
    ("content", "stage", "device", "expected"),
    [
        ({}, 2, "bfloat16", "bfloat16"),
        ({}, 0, "bfloat16", "bfloat16"),
        ({}, 2, "float16", "float16"),
        ({}, 0, "float16", "float32"),  # ZeRO 0 has no 16-bit weights
        ({}, None, "float16", "float16"),
        ({}, 2, "float32", "float32"),
        ({"bf16": AUTO, "fp16": AUTO}, 2, "bfloat16", "bfloat16"),
        ({"bf16": ON, "fp16": OFF}, 2, "float16", "bfloat16"),  # DeepSpeed says itself that the GPU lacks it
        ({"fp16": ON}, 2, "bfloat16", "float16"),
        ({"torch_autocast": ON}, 2, "float32", "bfloat16"),
        ({"bf16": OFF}, 2, "bfloat16", "float32"),
        ({"bf16": OFF}, 2, "float16", "float16"),
        ({"fp16": OFF}, 2, "float16", "float32"),
    ],
)
def test_what_auto_stands_for_with_a_file_of_deepspeed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: object, stage: int | None, device: str, expected: str
) -> None:
    monkeypatch.setattr(preparation, "automatic_precision", lambda _: device)
    file = deepspeed_file(tmp_path, content)
    assert deepspeed_config.automatic_for_deepspeed(file, stage, torch.device("cuda")) == expected
    if stage is not None:  # the training does what it stands for
        found, _ = deepspeed_config.precision_sections("auto", file, stage, torch.device("cuda"))
        assert found == expected


@pytest.mark.parametrize("given", [None, "float32", "bfloat16", "float16"])
def test_what_is_chosen_stays(given: str | None) -> None:
    settings = TrainingSettings(precision=given)
    assert with_automatic_precision(settings, torch.device("cuda")) is settings
