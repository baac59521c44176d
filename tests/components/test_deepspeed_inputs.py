"""The inputs of a component and DeepSpeed's file: which value is in effect, and what contradicts."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError
from allranks_steps.deepspeed_inputs import resolve_deepspeed_file

DEFAULTS: dict[str, Any] = {
    "strategy": "deepspeed",
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "max_grad_norm": 1.0,
    "precision": "float32",
    "learning_rate": 0.001,
    "weight_decay": 0.1,
    "optim": "adamw_torch",
    "lr_scheduler_type": "cosine",
    "warmup_steps": None,
    "warmup_ratio": 0.1,
    "deepspeed_stage": 2,
    "seed": 0,
}
TUNED = {
    "train_micro_batch_size_per_gpu": 3,
    "gradient_accumulation_steps": 4,
    "gradient_clipping": 0.5,
    "bf16": {"enabled": True},
    "fp16": {"enabled": False},
    "optimizer": {"type": "SGD", "params": {"lr": 0.25, "weight_decay": 0.0}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 0.25, "warmup_num_steps": 7}},
    "zero_optimization": {"stage": 1},
}


def resolve(path: Path, content: object, world_size: int = 2, **given: Any) -> dict[str, Any]:
    """The inputs that a file, and inputs that are not at their defaults, make different."""
    path.write_text(json.dumps(content))
    inputs = Namespace(**DEFAULTS | {"deepspeed": path} | given)
    found = vars(resolve_deepspeed_file(inputs, DEFAULTS.get, world_size))
    return {name: value for name, value in found.items() if name in DEFAULTS and value != DEFAULTS[name]}


def test_a_tuned_file_takes_the_place_of_defaults(tmp_path: Path) -> None:
    expected = {
        "per_device_train_batch_size": 3,
        "gradient_accumulation_steps": 4,
        "max_grad_norm": 0.5,
        "precision": "bfloat16",
        "learning_rate": 0.25,
        "weight_decay": 0.0,
        "optim": "sgd",
        "warmup_steps": 7,
        "deepspeed_stage": 1,
    }
    assert resolve(tmp_path / "ds.json", TUNED) == expected
    # Inputs with the file's own values agree with it.
    assert resolve(tmp_path / "ds.json", TUNED, **expected) == expected


def test_auto_and_missing_keys_stand_for_the_inputs(tmp_path: Path) -> None:
    given = {"per_device_train_batch_size": 5, "learning_rate": 0.5, "precision": "bfloat16", "deepspeed_stage": 3}
    given |= {"warmup_ratio": 0.3, "max_grad_norm": 2.0}
    content = {
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
        "bf16": {"enabled": "auto"},
        "gradient_clipping": "auto",
        "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}},
        "zero_optimization": {"stage": "auto"},
    }
    assert resolve(tmp_path / "ds.json", content, **given) == given
    assert resolve(tmp_path / "ds.json", {}, **given) == given


@pytest.mark.parametrize(
    ("content", "given", "expected"),
    [
        ({"train_batch_size": 24}, {}, (12, 1)),
        ({"train_batch_size": 24}, {"gradient_accumulation_steps": 4}, (3, 4)),
        ({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 4}, {}, (4, 3)),
        ({"gradient_accumulation_steps": 5}, {}, (8, 5)),
    ],
)
def test_batch_sizes_follow_from_each_other(
    tmp_path: Path, content: object, given: dict[str, int], expected: tuple[int, int]
) -> None:
    found = DEFAULTS | resolve(tmp_path / "ds.json", content, **given)
    assert (found["per_device_train_batch_size"], found["gradient_accumulation_steps"]) == expected


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"per_device_train_batch_size": 4}, "3 in .*, key train_micro_batch_size_per_gpu"),
        ({"gradient_accumulation_steps": 2}, "4 in .*, key gradient_accumulation_steps"),
        ({"max_grad_norm": 0.0}, "0.5 in .*, key gradient_clipping"),
        ({"precision": "float16"}, "bfloat16 in .*, key bf16.enabled"),
        ({"learning_rate": 0.1}, "0.25 in .*, key optimizer.params.lr"),
        ({"weight_decay": 0.2}, "0.0 in .*, key optimizer.params.weight_decay"),
        ({"deepspeed_stage": 3}, "1 in .*, key zero_optimization.stage"),
        ({"warmup_steps": 8}, "7 in .*, key scheduler.params.warmup_num_steps"),
        ({"warmup_ratio": 0.2}, "WarmupLR in .*, key scheduler"),
        ({"lr_scheduler_type": "linear"}, "WarmupLR in .*, key scheduler"),
    ],
)
def test_an_input_that_contradicts_is_named_with_the_key(tmp_path: Path, given: dict[str, Any], key: str) -> None:
    ((name, value),) = given.items()
    with pytest.raises(InputError, match=f"input {name}: {value}, and {key}"):
        resolve(tmp_path / "ds.json", TUNED, **given)


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        ({}, {"strategy": "ddp"}, "input deepspeed: a file, with the strategy ddp"),
        ([], {}, "input deepspeed: .* holds a list"),
        ({"optimizer": {"type": "Lamb"}}, {"optim": "sgd"}, "input optim: sgd, and Lamb in .*, key optimizer.type"),
        ({"fp16": {"enabled": False}}, {"precision": "float16"}, "input precision: float16, and false .* fp16.enabled"),
        ({"scheduler": {"type": "OneCycle"}}, {"warmup_steps": 3}, "input warmup_steps: 3, and OneCycle"),
        ({"train_batch_size": 24}, {"per_device_train_batch_size": 5}, "key train_batch_size: 24, on 2 ranks"),
        ({"gradient_clipping": "0.5"}, {}, "key gradient_clipping: '0.5'"),
        ({"optimizer": {"params": 1}}, {}, "key optimizer.params: 1"),
        ({"zero_optimization": {"stage": 4}}, {}, "key zero_optimization.stage: 4"),
        ({"scheduler": {"params": {"warmup_num_steps": 0}}}, {}, "key scheduler.params.warmup_num_steps: 0"),
    ],
)
def test_what_cannot_be(tmp_path: Path, content: object, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve(tmp_path / "ds.json", content, **given)


def test_without_a_file_the_inputs_stay(tmp_path: Path) -> None:
    inputs = Namespace(deepspeed=None, strategy="ddp")
    assert resolve_deepspeed_file(inputs, DEFAULTS.get, 2) is inputs
