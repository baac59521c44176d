"""Combine the inputs of a training with DeepSpeed's file, and refuse values that contradict each other."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.deepspeed_file import DeepSpeedFile, batches, read
from allranks.runtime.strategies.settings import AUTO

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
