"""DeepSpeed's configuration: a user's JSON file and the training's settings, which must agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import optim

from allranks.errors import InputError, Problem
from allranks.runtime.strategies import deepspeed_file, deepspeed_keys, deepspeed_optimizers, deepspeed_precision
from allranks.runtime.strategies.deepspeed_file import DeepSpeedFile, batches
from allranks.runtime.strategies.settings import TrainingSettings


@dataclass(frozen=True)
class Configuration:
    """The settings in effect, which are as in `TrainingSettings`, and `values` for `deepspeed.initialize`.

    per_device_train_batch_size: None if neither the file nor the settings have it
    """

    values: dict[str, Any]
    deepspeed_stage: int
    gradient_accumulation_steps: int
    per_device_train_batch_size: int | None
    max_grad_norm: float
    precision: str


def configuration(
    settings: TrainingSettings, optimizer: optim.Optimizer, world_size: int, device: torch.device
) -> Configuration:
    """Return the configuration of a training.

    A key of the file is used where the setting is None, and must have the same value otherwise. "auto" stands for the
    setting, and in the file's optimizer for the value of `optimizer`. A missing learning rate or weight decay is that
    of `optimizer`, too. Where there is neither, DeepSpeed's default applies.

    Raise InputError if the file cannot be read, has a key that a training cannot honour, contradicts the settings or
    the number of ranks, or requires what the device does not support.
    """
    file = deepspeed_file.read(settings.deepspeed_config)
    deepspeed_keys.reject(file)
    zero = file.section("zero_optimization")
    stage = file.agree("deepspeed_stage", settings.deepspeed_stage, "zero_optimization.stage", zero.get("stage"))
    stage = 2 if stage is None else stage
    steps, batch_size = batches(
        file, settings.gradient_accumulation_steps, settings.per_device_train_batch_size, world_size
    )
    clipping = file.agree(
        "max_grad_norm", settings.max_grad_norm, "gradient_clipping", file.content.get("gradient_clipping")
    )
    precision, sections = deepspeed_precision.sections(settings.precision, file, stage, device)
    if settings.offload:
        for key in ("offload_optimizer", "offload_param")[: 2 if stage == 3 else 1]:
            zero[key] = offloaded(file, key)
    values = {
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # a torch optimizer, which need not be compiled, can be offloaded too
        "steps_per_print": 1 << 30,
        **deepspeed_keys.passed_on(file),
        **deepspeed_optimizers.sections(file, optimizer, device, settings),
        **sections,
        "gradient_accumulation_steps": steps,
        "train_micro_batch_size_per_gpu": batch_size or 1,  # required; the training loop determines the batches
        "gradient_clipping": clipping or 0.0,  # DeepSpeed clips by default
        "zero_optimization": {**zero, "stage": stage},
    }
    return Configuration(
        deepspeed_file.without_auto(values), stage, steps, batch_size, clipping or 0.0, precision or "float32"
    )


def offloaded(file: DeepSpeedFile, key: str) -> dict[str, Any]:
    """Return a section of zero_optimization, with the device that `offload` asks for. Raise InputError if it has none.

    key: offload_optimizer or offload_param
    """
    section: dict[str, Any] = {"device": "cpu"} | (file.section("zero_optimization").get(key) or {})
    if section["device"] == "none":
        raise InputError(
            Problem(
                where="offload",
                found=f"enabled, and disabled in {file.path}, key zero_optimization.{key}.device",
                expected="the same value",
                fix='leave offload out, or set the key to "cpu"',
            )
        )
    return section
