"""A user's JSON file with DeepSpeed's configuration, and its keys.

Source: https://www.deepspeed.ai/docs/config-json/ and deepspeed.runtime.config
"""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.settings import AUTO

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
    if problems:
        raise InputError.of(problems)


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


_PRECISIONS = {"bf16": "bfloat16", "fp16": "float16", "torch_autocast": "bfloat16"}
_WITH_WARMUP = ("WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
_OPTIMIZERS = {"adam": "adamw_torch", "adamw": "adamw_torch", "sgd": "sgd"}
"""Values of the input optim by the types that DeepSpeed has for them."""


def resolve_deepspeed_file(inputs: Namespace, default: Callable[[str], Any], world_size: int) -> Namespace:
    """Return the inputs of a component with the values of DeepSpeed's file.

    inputs:  with `strategy` and `deepspeed`, the path of the file, or None. Other inputs are recognised by their names
             in the recipes
    default: returns the default of an input, such as `parser.get_default`

    A value in the file replaces the default of an input. An input with another value must agree with the file. "auto"
    and a missing key stand for the input.

    Raise InputError for a file that cannot be read, or that the strategy does not use, and for each input that
    contradicts the file.
    """
    if inputs.deepspeed is None:
        return inputs
    if inputs.strategy != "deepspeed":
        fix = "set strategy to deepspeed, or omit the file"
        found = f"a file, with the strategy {inputs.strategy}"
        raise InputError(Problem("input deepspeed", found, "the strategy deepspeed", fix))
    file = read(inputs.deepspeed, "input deepspeed")
    problems: list[Problem] = []
    resolved: dict[str, Any] = {}

    def is_set(name: str) -> bool:
        return hasattr(inputs, name) and getattr(inputs, name) not in (default(name), AUTO)

    for name, key, value in _values(file):
        if not hasattr(inputs, name):
            continue
        if is_set(name) and getattr(inputs, name) != value:
            problems.append(_contradiction(file, inputs, name, key, str(value)))
        resolved.setdefault(name, value)
    problems += [
        _contradiction(file, inputs, name, key, value) for name, key, value in _without_effect(file) if is_set(name)
    ]
    for key, precision in _PRECISIONS.items():
        if file.enabled(key) is False and inputs.precision == precision:
            problems.append(_contradiction(file, inputs, "precision", f"{key}.enabled", "false"))
    if problems:
        raise InputError.of(problems)
    steps, batch_size = (
        getattr(inputs, name) if is_set(name) else None
        for name in ("gradient_accumulation_steps", "per_device_train_batch_size")
    )
    steps, batch_size = batches(file, steps, batch_size, world_size)
    resolved["gradient_accumulation_steps"] = steps
    if batch_size is not None:
        resolved["per_device_train_batch_size"] = batch_size
    return Namespace(**{**vars(inputs), **resolved})


def _values(file: DeepSpeedFile) -> Iterator[tuple[str, str, Any]]:
    """Yield input, key and value for each key of the file that is equivalent to an input."""
    for name, key in (
        ("gradient_accumulation_steps", "gradient_accumulation_steps"),
        ("per_device_train_batch_size", "train_micro_batch_size_per_gpu"),
    ):
        if (size := file.content.get(key)) not in (None, "auto"):
            yield name, key, size
    for name, key in (
        ("max_grad_norm", "gradient_clipping"),
        ("learning_rate", "optimizer.params.lr"),
        ("weight_decay", "optimizer.params.weight_decay"),
        ("learning_rate", "scheduler.params.warmup_max_lr"),
    ):
        if (number := _value(file, key)) not in (None, "auto"):
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
                raise file.error(key, repr(number), 'a number, at least 0, or "auto"')
            yield name, key, number
    if (stage := _value(file, "zero_optimization.stage")) not in (None, "auto"):
        if type(stage) is not int or not 0 <= stage <= 3:
            raise file.error("zero_optimization.stage", repr(stage), '0, 1, 2, 3 or "auto"')
        yield "deepspeed_stage", "zero_optimization.stage", stage
    if (steps := _value(file, "scheduler.params.warmup_num_steps")) not in (None, "auto"):
        if type(steps) is not int or steps < 1:
            raise file.error("scheduler.params.warmup_num_steps", repr(steps), 'a whole number, at least 1, or "auto"')
        yield "warmup_steps", "scheduler.params.warmup_num_steps", steps
    for key, precision in _PRECISIONS.items():
        if file.enabled(key) is True:
            yield "precision", f"{key}.enabled", precision
    if (kind := str(_value(file, "optimizer.type")).lower()) in _OPTIMIZERS:
        yield "optim", "optimizer.type", _OPTIMIZERS[kind]


def _without_effect(file: DeepSpeedFile) -> Iterator[tuple[str, str, str]]:
    """Yield input, key and value for each input that has no effect, because the file replaces it."""
    optimizer = _value(file, "optimizer.type")
    if optimizer is not None and str(optimizer).lower() not in _OPTIMIZERS:
        yield "optim", "optimizer.type", str(optimizer)
    if (scheduler := _value(file, "scheduler.type")) is None:
        return
    warmup = _value(file, "scheduler.params.warmup_num_steps")
    names = ["lr_scheduler_type", "min_lr_ratio"]
    if scheduler not in _WITH_WARMUP:
        names += ["warmup_steps", "warmup_ratio"]
    elif warmup not in (None, "auto"):
        names += ["warmup_ratio"]
    for name in names:
        yield name, "scheduler", str(scheduler)


def _value(file: DeepSpeedFile, key: str) -> Any:
    """Return the value of a key with dots; None if it is missing. Raise InputError if a parent is not an object."""
    first, *rest = key.split(".")
    found: Any = file.content.get(first)
    for number, name in enumerate(rest, start=1):
        if found is None:
            return None
        if not isinstance(found, dict):
            raise file.error(".".join([first, *rest][:number]), repr(found), "an object")
        found = found.get(name)
    return found


def _contradiction(file: DeepSpeedFile, inputs: Namespace, name: str, key: str, value: str) -> Problem:
    found = f"{getattr(inputs, name)}, and {value} in {file.path}, key {key}"
    return Problem(f"input {name}", found, "the same value", f"remove {name} or the key")
