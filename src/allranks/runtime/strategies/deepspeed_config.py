"""DeepSpeed's configuration: defaults from the settings, and a user's JSON file on top of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from allranks.errors import InputError, Problem
from allranks.runtime.settings import TrainingSettings


def configuration(settings: TrainingSettings, world_size: int, device: torch.device) -> dict[str, Any]:
    """Return the configuration for `deepspeed.initialize`. Keys whose value is "auto" come from the settings.

    Raise InputError if the file cannot be read, contradicts the layout, or requires what the device does not support.
    """
    path = settings.deepspeed_config
    user_config = {} if path is None else _read(path)
    config = _defaults(settings) | {name: value for name, value in user_config.items() if name != "zero_optimization"}
    config["zero_optimization"] = _defaults(settings)["zero_optimization"] | user_config.get("zero_optimization", {})
    config |= _batches(config, world_size, str(path))
    if device.type == "cpu" and enabled(config, "fp16"):
        raise InputError(
            Problem(
                where=f"{path}, key fp16",
                found="enabled, on the CPU",
                expected="float32 or bfloat16: DeepSpeed has no fp16 without a GPU",
                fix='leave fp16 out, or use "bf16": {"enabled": true}',
            )
        )
    return config


def enabled(config: Mapping[str, Any], key: str) -> bool:
    """Return whether a section such as bf16 is enabled."""
    return bool(config.get(key, {}).get("enabled", False))


def _defaults(settings: TrainingSettings) -> dict[str, Any]:
    stage = 2 if settings.zero_stage is None else settings.zero_stage
    zero: dict[str, Any] = {"stage": stage}
    if settings.offload:
        zero["offload_optimizer"] = {"device": "cpu"}
        if stage == 3:
            zero["offload_param"] = {"device": "cpu"}
    return {
        "gradient_accumulation_steps": settings.gradient_accumulation_steps or 1,
        "gradient_clipping": settings.max_grad_norm or 0.0,
        "zero_optimization": zero,
        # The optimizer is a torch optimizer, so no operation has to be compiled, on the CPU or on a GPU.
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": 1 << 30,
    }


def _batches(config: Mapping[str, Any], world_size: int, where: str) -> dict[str, int]:
    """Return the batch sizes that DeepSpeed requires. It only checks that they agree; the training loop determines the
    actual batches."""
    accumulation_steps = int(config["gradient_accumulation_steps"])
    micro_batch = config.get("train_micro_batch_size_per_gpu")
    train_batch = config.get("train_batch_size")
    if train_batch is None:
        return {"train_micro_batch_size_per_gpu": int(micro_batch or 1)}
    micro_batches = accumulation_steps * world_size
    if train_batch % micro_batches or (micro_batch is not None and micro_batch * micro_batches != train_batch):
        factor = f"train_micro_batch_size_per_gpu {micro_batch} x " if micro_batch is not None else "a whole number x "
        raise InputError(
            Problem(
                where=f"{where}, key train_batch_size",
                found=f"{train_batch}, on {world_size} ranks",
                expected=f"{factor}gradient_accumulation_steps {accumulation_steps} x {world_size} ranks",
                fix="leave train_batch_size out, or change the number of ranks",
            )
        )
    return {"train_micro_batch_size_per_gpu": train_batch // micro_batches}


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(Problem("deepspeed_config", f"there is no file {path}", "a JSON file")) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(Problem("deepspeed_config", f"{path}: {error}", "a JSON file")) from None
    if not isinstance(content, dict):
        raise InputError(Problem("deepspeed_config", f"{path} holds a {type(content).__name__}", "a JSON object"))
    return _without_auto(content)


def _without_auto(section: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_auto(value) if isinstance(value, dict) else value
        for name, value in section.items()
        if value != "auto"
    }
