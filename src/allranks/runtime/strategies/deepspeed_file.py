"""A user's JSON file with DeepSpeed's configuration, and its keys.

Source: https://www.deepspeed.ai/docs/config-json/ and deepspeed.runtime.config
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

from allranks.errors import InputError, Problem, raise_any

_T = TypeVar("_T")


@dataclass(frozen=True)
class DeepSpeedFile:
    """The content of a file, and its path; both are empty without a file."""

    path: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)

    def section(self, key: str) -> dict[str, Any]:
        """Return the values of a section; {} if the file does not have it. Raise InputError if it is not an object."""
        section = self.content.get(key)
        if section is None:
            return {}
        if not isinstance(section, dict):
            raise self.error(key, repr(section), "an object")
        return dict(section)

    def enabled(self, key: str) -> Any:
        """Return the value of `enabled` in a section, None if it is not set: a bool or "auto" in a valid file."""
        return self.section(key).get("enabled")

    def agree(self, setting: str, value: _T | None, key: str, found: _T | str | None) -> _T | None:
        """Return the value of a setting or of the equivalent key, whichever is set; None if neither is.

        Raise InputError if both are set and differ. "auto" in the file stands for the setting.
        """
        if found is None or found == "auto":
            return value
        if value is not None and value != found:
            fix = f'set {setting} to {found}, or the key to "auto"'
            raise InputError(Problem(setting, f"{value}, and {found} in {self.path}, key {key}", "the same value", fix))
        return found  # type: ignore[return-value]

    def error(self, key: str, found: str, expected: str, fix: str = "") -> InputError:
        return InputError(Problem(f"{self.path}, key {key}", found, expected, fix))


def read(path: str | Path | None, where: str = "deepspeed_config") -> DeepSpeedFile:
    """Return the content of a file; an empty one without a path. Raise InputError if it is not a JSON object.

    where: the setting or input with the path, for the error
    """
    if path is None:
        return DeepSpeedFile()
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(Problem(where, f"there is no file {path}", "a JSON file")) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(Problem(where, f"{path}: {error}", "a JSON file")) from None
    if not isinstance(content, dict):
        raise InputError(Problem(where, f"{path} holds a {type(content).__name__}", "a JSON object"))
    return DeepSpeedFile(str(path), content)


def without_auto(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section without the keys whose value is "auto", so that DeepSpeed's defaults apply."""
    return {
        key: without_auto(value) if isinstance(value, dict) else value
        for key, value in section.items()
        if value != "auto"
    }


def batches(
    file: DeepSpeedFile, steps: int | None, batch_size: int | None, world_size: int | None
) -> tuple[int, int | None]:
    """Return the backward passes per step, and the samples of a rank in each of them; None if they are not known.

    steps, batch_size: the same as settings, which the file must agree with; None: the file's
    world_size: number of ranks that train_batch_size is for; None: ignore train_batch_size

    Raise InputError for an invalid number, and if the file contradicts a setting or the number of ranks.
    """
    for key in ("gradient_accumulation_steps", "train_micro_batch_size_per_gpu", "train_batch_size"):
        number = file.content.get(key)
        if number not in (None, "auto") and (type(number) is not int or number < 1):
            raise file.error(key, repr(number), 'a whole number, at least 1, or "auto"')
    key = "gradient_accumulation_steps"
    steps = file.agree(key, steps, key, file.content.get(key))
    key = "train_micro_batch_size_per_gpu"
    batch_size = file.agree("per_device_train_batch_size", batch_size, key, file.content.get(key))
    total = file.content.get("train_batch_size")
    if world_size is None and steps is None and total not in (None, "auto"):
        expected = "gradient_accumulation_steps beside it: the ranks are fewer than it is for"
        raise file.error("train_batch_size", str(total), expected)
    if total is None or total == "auto" or world_size is None:
        return steps or 1, batch_size
    if steps is None:
        steps = total // (batch_size * world_size) if batch_size else 1
    if batch_size is None:
        batch_size = total // (steps * world_size)
    if batch_size * steps * world_size != total or not total:
        raise file.error(
            "train_batch_size",
            f"{total}, on {world_size} ranks",
            f"train_micro_batch_size_per_gpu {batch_size} x gradient_accumulation_steps {steps} x {world_size} ranks",
            'set train_batch_size to "auto", or change the number of ranks',
        )
    return steps, batch_size


RESOLVED = frozenset(
    {
        "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping",
        "optimizer", "scheduler", "fp16", "bf16", "torch_autocast", "zero_optimization",
    }
)  # fmt: skip
"""Keys that must agree with the training's settings."""

ENGINE_KEYS = frozenset(
    {
        "communication_data_type", "prescale_gradients", "gradient_predivide_factor", "gradient_allreduce_op",
        "disable_allgather", "managed_gradient_accumulation", "disable_python_gc", "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer", "steps_per_print", "wall_clock_breakdown", "memory_breakdown", "dump_state",
        "log_level", "timers", "flops_profiler", "comms_logger", "tensorboard", "wandb", "csv_monitor", "comet", "aio",
    }
)  # fmt: skip
"""Keys that DeepSpeed's engine reads by itself."""

_REFUSED_KEYS = {
    "the training loop has its own loader": ("curriculum_learning", "data_efficiency", "dataloader_drop_last"),
    "runtime.Checkpoints saves the training": ("checkpoint", "datastates", "nebula", "use_node_local_storage"),
    "DeepSpeed has removed it: use bf16, fp16 or torch_autocast": ("amp",),
    "DeepSpeed has removed it": (
        "compression_training", "eigenvalue", "elasticity", "graph_harvesting", "progressive_layer_drop",
        "quantize_training", "sparse_attention", "sparse_gradients",
    ),
    "a model must be written for it": (
        "expert_parallel", "pipeline", "seq_parallel_communication_data_type", "sequence_parallel_size",
        "tensor_parallel", "use_data_before_expert_parallelism",
    ),
    "it configures DeepSpeed's own function, which models must call: use the setting activation_checkpointing": (
        "activation_checkpointing",
    ),
    "DeepSpeed's launcher starts the trials: use the component autotune_deepspeed": ("autotuning",),
    "it configures engine.compile, which is not called: use the setting compile": ("compile",),
    "it selects optimizers whose state the checkpoints do not have": ("data_types",),
    "it is for models that generate text while they train": ("hybrid_engine",),
    "it is for inference": ("weight_quantization",),
}  # fmt: skip
REFUSED = {key: reason for reason, keys in _REFUSED_KEYS.items() for key in keys}
"""Keys that would have no effect or a wrong effect in a training loop, with the reason."""

_SHARDS = "the checkpoints do not have shards of this kind"
REFUSED_ZERO = (
    "zenflow",
    "zero_hpz_partition_size",
    "zero_quantized_weights",
    "zero_quantized_nontrainable_weights",
    "zero_quantized_gradients",
)
"""Rejected keys of zero_optimization."""


def reject_keys(file: DeepSpeedFile) -> None:
    """Raise InputError for keys that DeepSpeed does not have, or that a training cannot use."""
    problems = []
    for key, value in file.content.items():
        if key in REFUSED and _enabled(value) and not _is_of_autotuner(key, value):
            problems.append(_refused(file, key, REFUSED[key]))
        elif key not in RESOLVED | ENGINE_KEYS | REFUSED.keys():
            close = get_close_matches(key, RESOLVED | ENGINE_KEYS, 1)
            fix = f"use {close[0]}" if close else "remove it"
            problems.append(Problem(f"{file.path}, key {key}", "not a key of DeepSpeed's", "a known key", fix))
    if file.content.get("managed_gradient_accumulation") is False:
        reason = "the training counts the backward passes of a step"
        problems.append(_refused(file, "managed_gradient_accumulation", reason, found="false"))
    zero = file.section("zero_optimization")
    for key in REFUSED_ZERO:
        if _enabled(zero.get(key)) and not (key == "zero_hpz_partition_size" and zero[key] == 1):
            problems.append(_refused(file, f"zero_optimization.{key}", _SHARDS))
    for key in ("offload_optimizer", "offload_param"):
        section = zero.get(key)
        if not isinstance(section, (dict, NoneType)):
            raise file.error(f"zero_optimization.{key}", repr(section), "an object", f'write {{"device": {section!r}}}')
        device = (section or {}).get("device")
        if device not in (None, "cpu", "none", "auto"):
            problems.append(_refused(file, f"zero_optimization.{key}.device", _SHARDS, found=str(device)))
    raise_any(problems)


def engine_keys(file: DeepSpeedFile) -> dict[str, Any]:
    """Return the keys and values that DeepSpeed's engine reads by itself."""
    return {key: value for key, value in file.content.items() if key in ENGINE_KEYS or _is_of_autotuner(key, value)}


def _is_of_autotuner(key: str, value: Any) -> bool:
    """Return whether DeepSpeed's autotuner wrote the key, with which the engine measures some steps and exits."""
    return key == "autotuning" and isinstance(value, dict) and bool({"metric_path", "model_info_path"} & value.keys())


def _enabled(value: Any) -> bool:
    """Return whether a key has an effect. A section without `enabled` has one."""
    if isinstance(value, dict):
        return value.get("enabled", True) not in (None, False, "auto")
    return value not in (None, False, "auto")


def _refused(file: DeepSpeedFile, key: str, reason: str, found: str = "set") -> Problem:
    return Problem(f"{file.path}, key {key}", found, f"a file without it: {reason}", "remove it")
