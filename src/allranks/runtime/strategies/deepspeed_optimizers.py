"""The optimizer and the learning rate schedule in DeepSpeed's configuration."""

from __future__ import annotations

from importlib.util import find_spec
from inspect import signature
from typing import Any

import torch
from torch import optim

from allranks.runtime.strategies.deepspeed_file import DeepSpeedFile
from allranks.runtime.strategies.settings import TrainingSettings

_ADAM = ("adam", "adamw")
_FOR_GPUS = ("lamb", "lion", "muon")
_OF_MUP = ("muadam", "muadamw", "musgd")
_SCHEDULES = ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
_SAME_AS = {"lr": "learning_rate", "weight_decay": "weight_decay"}
"""Parameters that are also inputs of a training, by the names that they have there."""

SCHEDULE_PARAMETERS = {
    "WarmupLR": ("warmup_max_lr", "warmup_num_steps"),
    "WarmupDecayLR": ("warmup_max_lr", "warmup_num_steps", "total_num_steps"),
    "WarmupCosineLR": ("warmup_num_steps", "total_num_steps"),
}
"""Parameters of a schedule that the training has a value for, if the file does not have them."""


def sections(
    file: DeepSpeedFile, optimizer: optim.Optimizer, device: torch.device, settings: TrainingSettings
) -> dict[str, Any]:
    """Return the sections "optimizer" and "scheduler", if the file has them, without "auto".

    optimizer: the training loop's, whose values "auto" stands for. Without a learning rate or weight decay, the file's
               optimizer has the loop's, as it does without "auto"
    settings:  has the steps that "auto" stands for in the scheduler

    Raise InputError for an optimizer that is unknown or does not run on the device, for a learning rate or weight decay
    other than the loop's, and for "auto" where there is no such value.
    """
    found: dict[str, Any] = {}
    if section := file.section("optimizer"):
        kind = _kind(file, "optimizer", section)
        _check_optimizer(file, kind, device)
        params = {
            name: _value(file, optimizer, name, value) for name, value in dict(section.get("params") or {}).items()
        }
        for name in _SAME_AS:
            if name in optimizer.param_groups[0] and _takes(kind, name):
                params.setdefault(name, optimizer.param_groups[0][name])
        if kind.lower() in _ADAM and device.type == "cpu":
            params.setdefault("torch_adam", True)  # DeepSpeed's own would have to be compiled on every rank
        found["optimizer"] = section | {"params": params}
    if section := file.section("scheduler"):
        kind = _kind(file, "scheduler", section)
        if kind not in _SCHEDULES and not hasattr(optim.lr_scheduler, kind):
            names = ", ".join(_SCHEDULES)
            raise file.error("scheduler.type", repr(kind), f"one of {names}, or of torch.optim.lr_scheduler")
        stand_ins = {
            "warmup_min_lr": 0.0,
            "warmup_max_lr": optimizer.param_groups[0].get("lr"),
            "warmup_num_steps": None if settings.warmup_steps is None else max(1, settings.warmup_steps),
            "total_num_steps": settings.max_steps,
        }
        params = dict(section.get("params") or {})
        for name in SCHEDULE_PARAMETERS.get(kind, ()):
            if stand_ins[name] is not None:
                params.setdefault(name, "auto")
        for name, value in params.items():
            if value != "auto":
                continue
            if (own := stand_ins.get(name)) is None:
                raise file.error(f"scheduler.params.{name}", '"auto"', "a number: the training has none")
            params[name] = own
        found["scheduler"] = section | {"params": params}
    return found


def parameters(optimizer: optim.Optimizer) -> list[dict[str, Any]]:
    """Return the parameter groups for the file's optimizer: the loop's, and those without weight decay stay so."""
    groups = []
    for group in optimizer.param_groups:
        undecayed = group.get("weight_decay") == 0 and len(optimizer.param_groups) > 1
        groups.append({"params": group["params"]} | ({"weight_decay": 0.0} if undecayed else {}))
    return groups


def _kind(file: DeepSpeedFile, key: str, section: dict[str, Any]) -> str:
    kind = section.get("type")
    if not isinstance(kind, str):
        raise file.error(f"{key}.type", repr(kind), "a name")
    return kind


def _check_optimizer(file: DeepSpeedFile, kind: str, device: torch.device) -> None:
    key, name = "optimizer.type", kind.lower()
    if name in _FOR_GPUS and device.type == "cpu":
        raise file.error(key, f"{kind}, on the CPU", "Adam, AdamW, or one of torch.optim: it is for GPUs")
    if name in _OF_MUP and find_spec("mup") is None:
        raise file.error(key, f"{kind}, and mup is not installed", "an optimizer that is installed", "pip install mup")
    if name not in (*_ADAM, *_FOR_GPUS, *_OF_MUP, "adagrad") and not hasattr(optim, kind):
        raise file.error(key, repr(kind), "one of DeepSpeed's optimizers, or of torch.optim")


def _takes(kind: str, name: str) -> bool:
    """Whether an optimizer has a parameter. All of DeepSpeed's own have the two that it is called for."""
    known = getattr(optim, kind, None)
    return known is None or name in signature(known).parameters


def _value(file: DeepSpeedFile, optimizer: optim.Optimizer, name: str, value: Any) -> Any:
    group = optimizer.param_groups[0]
    if value == "auto" and name not in group:
        raise file.error(f"optimizer.params.{name}", '"auto"', "a value: the loop's optimizer has none")
    if value == "auto":
        return group[name]
    if name in _SAME_AS and name in group:
        file.agree(_SAME_AS[name], group[name], f"optimizer.params.{name}", value)
    return value
