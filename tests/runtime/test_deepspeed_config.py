"""A user's DeepSpeed configuration on top of the defaults, and what contradicts the layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from allranks.errors import InputError
from allranks.runtime.settings import TrainingSettings
from allranks.runtime.strategies.deepspeed_config import configuration

CPU = torch.device("cpu")


def made(path: Path, content: object, world_size: int = 4, **options: Any) -> dict[str, Any]:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return configuration(TrainingSettings(deepspeed_config=path, **options), world_size, CPU)


def test_defaults() -> None:
    config = configuration(
        TrainingSettings(gradient_accumulation_steps=3, max_grad_norm=0.5, zero_stage=3, offload=True), 4, CPU
    )
    assert config["gradient_accumulation_steps"] == 3
    assert config["gradient_clipping"] == 0.5
    cpu = {"device": "cpu"}
    assert config["zero_optimization"] == {"stage": 3, "offload_optimizer": cpu, "offload_param": cpu}
    assert "optimizer" not in config, "an optimizer of DeepSpeed's would have to be compiled"


def test_a_users_keys_win(tmp_path: Path) -> None:
    given = {"gradient_accumulation_steps": 5, "gradient_clipping": "auto", "zero_optimization": {"stage": 1}}
    config = made(tmp_path / "ds.json", given, gradient_accumulation_steps=2, max_grad_norm=0.5, zero_stage=3)
    assert config["gradient_accumulation_steps"] == 5
    assert config["gradient_clipping"] == 0.5
    assert config["zero_optimization"] == {"stage": 1}


def test_a_batch_size_that_fits(tmp_path: Path) -> None:
    config = made(tmp_path / "ds.json", {"train_batch_size": 24}, gradient_accumulation_steps=2)
    assert config["train_micro_batch_size_per_gpu"] == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"train_batch_size": 6}, "key train_batch_size: 6, on 4 ranks"),
        ({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4}, "train_micro_batch_size_per_gpu 4 x"),
        ({"fp16": {"enabled": True}}, "key fp16: enabled, on the CPU"),
        ("{", "ds.json: Expecting"),
        ("[]", "holds a list"),
    ],
)
def test_what_cannot_be(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(tmp_path / "ds.json", content)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        configuration(TrainingSettings(deepspeed_config=tmp_path / "none.json"), 4, CPU)
