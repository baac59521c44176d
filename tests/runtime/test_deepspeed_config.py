"""A user's DeepSpeed configuration and the settings: what is in effect, and what contradicts."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from allranks.errors import InputError
from allranks.runtime.strategies import deepspeed_config
from allranks.runtime.strategies.deepspeed_config import Configuration, configuration
from allranks.runtime.strategies.settings import TrainingSettings

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def optimizer() -> torch.optim.Optimizer:
    weight, bias = torch.nn.Linear(2, 2).parameters()
    groups: list[dict[str, Any]] = [{"params": [weight]}, {"params": [bias], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.25, weight_decay=0.1)


def made(path: Path, content: object, device: torch.device = CPU, **options: Any) -> Configuration:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return configuration(TrainingSettings(deepspeed_config=path, **options), optimizer(), 4, device)


def test_defaults() -> None:
    settings = TrainingSettings(gradient_accumulation_steps=3, max_grad_norm=0.5, deepspeed_stage=3, offload=True)
    found = configuration(settings, optimizer(), 4, CPU)
    assert (found.gradient_accumulation_steps, found.max_grad_norm, found.precision) == (3, 0.5, "float32")
    assert found.values["gradient_accumulation_steps"] == 3
    assert found.values["gradient_clipping"] == 0.5
    cpu = {"device": "cpu"}
    assert found.values["zero_optimization"] == {"stage": 3, "offload_optimizer": cpu, "offload_param": cpu}
    assert not {"optimizer", "bf16", "fp16", "torch_autocast"} & set(found.values)


def test_nothing_is_clipped_by_default() -> None:
    assert configuration(TrainingSettings(), optimizer(), 1, CPU).values["gradient_clipping"] == 0


def test_the_file_takes_the_place_of_settings_that_are_none(tmp_path: Path) -> None:
    content = {
        "gradient_accumulation_steps": 5,
        "train_micro_batch_size_per_gpu": 2,
        "gradient_clipping": 0.5,
        "zero_optimization": {"stage": 1, "reduce_bucket_size": 1000, "allgather_bucket_size": "auto"},
        "wall_clock_breakdown": True,
    }
    found = made(tmp_path / "ds.json", content)
    assert (found.gradient_accumulation_steps, found.per_device_train_batch_size) == (5, 2)
    assert (found.max_grad_norm, found.deepspeed_stage) == (0.5, 1)
    assert found.values["zero_optimization"] == {"stage": 1, "reduce_bucket_size": 1000}
    assert found.values["wall_clock_breakdown"] is True


def test_auto_stands_for_the_settings(tmp_path: Path) -> None:
    content = {
        "gradient_accumulation_steps": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "train_batch_size": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
        "zero_optimization": {"stage": "auto"},
        "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto", "eps": 1e-6}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto"}},
    }
    settings: dict[str, Any] = {
        "gradient_accumulation_steps": 2,
        "per_device_train_batch_size": 3,
        "deepspeed_stage": 1,
    }
    found = made(tmp_path / "ds.json", content, max_grad_norm=1.0, precision="bfloat16", **settings)
    assert (found.gradient_accumulation_steps, found.per_device_train_batch_size, found.deepspeed_stage) == (2, 3, 1)
    assert (found.max_grad_norm, found.precision) == (1.0, "bfloat16")
    assert found.values["bf16"] == {"enabled": True}
    assert "fp16" not in found.values
    params = {"lr": 0.25, "weight_decay": 0.1, "eps": 1e-6, "torch_adam": True}
    assert found.values["optimizer"]["params"] == params
    assert found.values["scheduler"]["params"] == {"warmup_min_lr": 0.0, "warmup_max_lr": 0.25}


def test_auto_is_resolved_as_accelerate_does(tmp_path: Path) -> None:
    utils = pytest.importorskip("accelerate.utils")
    content: dict[str, Any] = {
        "gradient_accumulation_steps": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_clipping": "auto",
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 1000},
        "optimizer": {"type": "SGD", "params": {"lr": "auto", "weight_decay": "auto", "momentum": 0.9}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
    }
    ours = made(
        tmp_path / "ds.json",
        content,
        gradient_accumulation_steps=2,
        per_device_train_batch_size=3,
        max_grad_norm=0.5,
        warmup_steps=7,
    )
    plugin = utils.DeepSpeedPlugin(hf_ds_config=str(tmp_path / "ds.json"))
    values = {"train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 2, "gradient_clipping": 0.5}
    values |= {"optimizer.params.lr": 0.25, "optimizer.params.weight_decay": 0.1}
    values |= {"scheduler.params.warmup_max_lr": 0.25, "scheduler.params.warmup_num_steps": 7}
    plugin.deepspeed_config_process(must_match=False, **values)
    assert {key: ours.values[key] for key in content} == {key: plugin.deepspeed_config[key] for key in content}


def test_the_training_has_what_the_files_optimizer_and_scheduler_lack(tmp_path: Path) -> None:
    content = {"optimizer": {"type": "SGD"}, "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 3}}}
    found = made(tmp_path / "ds.json", content, warmup_steps=5, max_steps=50).values
    assert found["optimizer"]["params"] == {"lr": 0.25, "weight_decay": 0.1}
    steps = {"warmup_num_steps": 3, "total_num_steps": 50}
    assert found["scheduler"]["params"] == steps | {"warmup_max_lr": 0.25}
    content = {"optimizer": {"type": "Rprop"}, "scheduler": {"type": "WarmupCosineLR"}}
    found = made(tmp_path / "ds.json", content, warmup_steps=0, max_steps=50).values
    assert found["optimizer"]["params"] == {"lr": 0.25}  # it has no weight decay
    assert found["scheduler"]["params"] == {"warmup_num_steps": 1, "total_num_steps": 50}  # DeepSpeed takes no 0


def test_parameters_without_weight_decay_stay_so() -> None:
    decayed, undecayed = deepspeed_config.optimizer_parameters(optimizer())
    assert "weight_decay" not in decayed
    assert undecayed["weight_decay"] == 0


def test_fewer_ranks_than_the_file_is_for_take_more_passes(tmp_path: Path) -> None:
    content = {"train_batch_size": 24, "gradient_accumulation_steps": 2, "train_micro_batch_size_per_gpu": 2}
    found = made(tmp_path / "ds.json", content, passes_per_batch=2)  # on 4 ranks of 6
    assert (found.gradient_accumulation_steps, found.values["gradient_accumulation_steps"]) == (4, 4)
    del content["gradient_accumulation_steps"]
    with pytest.raises(InputError, match="expected: gradient_accumulation_steps beside it"):
        made(tmp_path / "ds.json", content, passes_per_batch=2)


@pytest.mark.parametrize(
    ("precision", "stage", "device", "section"),
    [
        ("bfloat16", 2, CPU, None),
        ("bfloat16", 3, CPU, "torch_autocast"),
        ("float16", 2, GPU, "fp16"),
    ],
)
def test_precisions(precision: str, stage: int, device: torch.device, section: str | None) -> None:
    settings = TrainingSettings(precision=precision, deepspeed_stage=stage)
    values = configuration(settings, optimizer(), 4, device).values
    assert {"bf16", "fp16", "torch_autocast"} & set(values) == ({section} if section else set())


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ({"train_batch_size": 6}, {}, "key train_batch_size: 6, on 4 ranks"),
        ({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4}, {}, "train_micro_batch_size_per_gpu 4 x"),
        (
            {"gradient_accumulation_steps": 2},
            {"gradient_accumulation_steps": 3},
            "^gradient_accumulation_steps: 3, and 2",
        ),
        ({"train_micro_batch_size_per_gpu": 2}, {"per_device_train_batch_size": 3}, "^per_device_train_batch_size: 3"),
        ({"gradient_clipping": 0.5}, {"max_grad_norm": 1.0}, "^max_grad_norm: 1.0, and 0.5"),
        ({"zero_optimization": {"stage": 1}}, {"deepspeed_stage": 2}, "^deepspeed_stage: 2, and 1"),
        ({"zero_optimization": {"offload_optimizer": {"device": "none"}}}, {"offload": True}, "^offload: enabled"),
        ({"bf16": {"enabled": True}}, {"precision": "float32"}, "^precision: float32, and bfloat16"),
        ({"bf16": {"enabled": False}}, {"precision": "bfloat16"}, "bf16 is disabled"),
        ({"bf16": {"enabled": True}}, {"deepspeed_stage": 0}, "16-bit weights"),
        ({"fp16": {"enabled": True}}, {}, "key fp16: float16 .* on the CPU"),
        ({}, {"precision": "float16"}, "^precision: float16 .* on the CPU"),
        ({"torch_autocast": {"enabled": True, "dtype": "float16"}}, {}, "use the section fp16"),
        ({"optimizer": {"type": "AdamW", "params": {"lr": 0.5}}}, {}, "^learning_rate: 0.25, and 0.5"),
        ({"optimizer": {"type": "AdamW", "params": {"rho": "auto"}}}, {}, "optimizer.params.rho"),
        ({"optimizer": {"type": "Lamb"}}, {}, "Lamb, on the CPU"),
        ({"optimizer": {"type": "Nadamax"}}, {}, "Nadamax"),
        ({"optimizer": {}, "scheduler": {"type": "Wave"}}, {}, "one of LRRangeTest"),
        ({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}}, {}, "warmup_num_steps"),
        ({"autotuning": {"enabled": True}}, {}, "use the component autotune_deepspeed"),
        ({"data_efficiency": {"enabled": True}}, {}, "own loader"),
        ({"managed_gradient_accumulation": False}, {}, "managed_gradient_accumulation: false"),
        ({"zero_optimization": {"zero_hpz_partition_size": 2}}, {}, "zero_hpz_partition_size"),
        ({"zero_optimization": {"offload_optimizer": {"device": "nvme"}}}, {}, "device: nvme"),
        ({"zero_optimization": {"zero_quantized_weights": True}}, {}, "zero_quantized_weights: set"),
        ({"zero_optimization": {"offload_optimizer": "cpu"}}, {}, "offload_optimizer: 'cpu'"),
        ({"bf16": {"enabled": 1}}, {}, "bf16.enabled: 1"),
        ({"train_batch_size": "32"}, {}, "train_batch_size: '32'"),
        ({"train_batch_size": 32, "gradient_accumulation_steps": 0}, {}, "gradient_accumulation_steps: 0"),
        ({"zero_optimisation": {}}, {}, "use zero_optimization"),
        ({"zero_optimization": 3}, {}, "an object"),
        ("{", {}, "ds.json: Expecting"),
        ("[]", {}, "holds a list"),
    ],
)
def test_what_cannot_be(tmp_path: Path, content: object, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(tmp_path / "ds.json", content, **options)


def test_disabled_features_are_left_out(tmp_path: Path) -> None:
    # Files of other tools have these sections, which DeepSpeed refuses even if they are disabled.
    found = made(tmp_path / "ds.json", {"amp": {"enabled": False}, "elasticity": {"enabled": False}})
    assert not {"amp", "elasticity"} & set(found.values)


def test_a_trial_of_the_autotuner_is_measured(tmp_path: Path) -> None:
    trial = {"enabled": True, "metric_path": "metrics.json"}
    assert made(tmp_path / "ds.json", {"autotuning": trial}).values["autotuning"] == trial


def test_a_path_as_text(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"gradient_clipping": 0.5}')
    settings = TrainingSettings(deepspeed_config=str(tmp_path / "ds.json"))
    assert configuration(settings, optimizer(), 4, CPU).max_grad_norm == 0.5


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        configuration(TrainingSettings(deepspeed_config=tmp_path / "none.json"), optimizer(), 4, CPU)
