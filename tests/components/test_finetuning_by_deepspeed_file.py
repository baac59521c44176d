"""finetune_language_model with a file of DeepSpeed's: its keys are the inputs, and Transformers agrees with them."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from component_processes import folder_of
from finetuning import PLACES, RECIPE, recipe

from allranks.errors import InputError

__all__ = ["recipe"]

SPEC = ("--spec", str(folder_of(RECIPE) / "component.yaml"))

pytestmark = pytest.mark.slow
"""One process of pytest imports Transformers, for all of these."""


@pytest.fixture
def deepspeed_settings(
    recipe: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., dict[str, Any]]]:
    """The keyword arguments of TrainingArguments for a file of DeepSpeed's, and inputs."""
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    ranks = SimpleNamespace(world_size=1, device=torch.device("cpu"))

    def settings(content: object, *words: str) -> dict[str, Any]:
        (tmp_path / "deepspeed.json").write_text(json.dumps(content))
        places = [word for name in PLACES for word in (f"--{name}", str(tmp_path / name))]
        given = ["--strategy", "deepspeed", "--deepspeed", str(tmp_path / "deepspeed.json"), *words]
        monkeypatch.setattr(sys, "argv", ["train.py", *SPEC, *places, *given])
        args = recipe("trainer_settings").resolved(ranks)
        found: dict[str, Any] = recipe("trainer_settings").keywords(args, ranks)
        return found

    yield settings
    unset_hf_deepspeed_config()


def test_transformers_agrees_with_a_tuned_deepspeed_file(deepspeed_settings: Callable[..., dict[str, Any]]) -> None:
    from transformers import TrainingArguments

    tuned = {
        "train_micro_batch_size_per_gpu": 3,
        "gradient_accumulation_steps": 4,
        "gradient_clipping": 0.5,
        "bf16": {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 0.25, "weight_decay": 0.5, "betas": [0.5, 0.75], "eps": 0.01}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 7}},
        "zero_optimization": {"stage": 3},
    }
    found = TrainingArguments(**deepspeed_settings(tuned))
    assert (found.per_device_train_batch_size, found.gradient_accumulation_steps, found.max_grad_norm) == (3, 4, 0.5)
    assert (found.learning_rate, found.weight_decay, found.adam_beta1, found.bf16) == (0.25, 0.5, 0.5, True)
    found.hf_deepspeed_config.trainer_config_finalize(found, None, 50)  # raises for what differs
    config = found.hf_deepspeed_config.config
    steps = {"warmup_num_steps": 7, "total_num_steps": 50}
    assert config["scheduler"]["params"] == steps | {"warmup_max_lr": 0.25}
    assert config["train_batch_size"] == 12
    assert config["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] is True


def test_keys_that_a_deepspeed_file_does_not_have_are_the_inputs(
    deepspeed_settings: Callable[..., dict[str, Any]],
) -> None:
    words = ("--deepspeed_stage", "3", "--offload", "true", "--max_grad_norm", "2")
    found = deepspeed_settings({"zero_optimization": {"offload_param": {"pin_memory": False}}}, *words)
    zero = found["deepspeed"]["zero_optimization"]
    assert (zero["stage"], zero["offload_optimizer"]["device"]) == (3, "cpu")
    assert zero["offload_param"] == {"device": "cpu", "pin_memory": False}
    assert (found["max_grad_norm"], found["deepspeed"]["gradient_clipping"]) == (2, "auto")


def test_the_precision_that_auto_stands_for(
    deepspeed_settings: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """tests/runtime/test_auto_precision.py has every device and file."""
    monkeypatch.setattr("allranks.runtime.strategies.preparation.automatic_precision", lambda _: "float16")
    found = deepspeed_settings({}, "--precision", "auto")
    assert (found["fp16"], found["bf16"]) == (True, False)
    found = deepspeed_settings({"bf16": {"enabled": True}}, "--precision", "auto")
    assert (found["fp16"], found["bf16"]) == (False, True)
    found = deepspeed_settings({"fp16": {"enabled": False}})
    assert (found["fp16"], found["bf16"]) == (False, False)


@pytest.mark.parametrize(
    ("content", "words", "said"),
    [
        ([], (), "input deepspeed: .* holds a list"),
        (
            {"zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": False}},
            (),
            "stage3_gather_16bit_weights_on_model_save: false",
        ),
        ({"gradient_clipping": 0.5}, ("--max_grad_norm", "2"), "input max_grad_norm: 2.0, and 0.5"),
        ({"zero_optimization": {"offload_optimizer": {"device": "none"}}}, ("--offload", "true"), "offload: enabled"),
        ({"torch_autocast": {"enabled": True}}, (), "key torch_autocast: enabled"),
    ],
)
def test_a_deepspeed_file_that_cannot_be_used_is_refused(
    deepspeed_settings: Callable[..., dict[str, Any]], content: object, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        deepspeed_settings(content, *words)
