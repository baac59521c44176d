"""DeepSpeed's configuration: a user's JSON file and the training's settings, which must agree."""

from dataclasses import dataclass
from importlib.util import find_spec
from inspect import signature
from typing import Any

import torch
from torch import optim

from allranks.errors import InputError, Problem
from allranks.runtime.strategies import deepspeed_file, preparation
from allranks.runtime.strategies.deepspeed_file import DeepSpeedFile, batches
from allranks.runtime.strategies.settings import AUTO, TrainingSettings


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
    of `optimizer`, too. Without either, DeepSpeed's default applies.

    Raise InputError if the file cannot be read, has a key that a training cannot use, contradicts the settings or the
    number of ranks, or does not fit the device.
    """
    file = deepspeed_file.read(settings.deepspeed_config)
    deepspeed_file.reject_keys(file)
    zero = file.section("zero_optimization")
    stage = file.agree("deepspeed_stage", settings.deepspeed_stage, "zero_optimization.stage", zero.get("stage"))
    stage = 2 if stage is None else stage
    # With several passes per batch, the ranks are fewer than the file's train_batch_size is for.
    steps, batch_size = batches(
        file,
        settings.gradient_accumulation_steps,
        settings.per_device_train_batch_size,
        world_size if settings.passes_per_batch == 1 else None,
    )
    steps *= settings.passes_per_batch
    clipping = file.agree(
        "max_grad_norm", settings.max_grad_norm, "gradient_clipping", file.content.get("gradient_clipping")
    )
    precision, sections = precision_sections(settings.precision, file, stage, device)
    if settings.offload:
        for key in ("offload_optimizer", "offload_param")[: 2 if stage == 3 else 1]:
            zero[key] = offloaded(file, key)
    values = {
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # a torch optimizer, which need not be compiled, can be offloaded too
        "steps_per_print": 1 << 30,
        **deepspeed_file.engine_keys(file),
        **optimizer_sections(file, optimizer, device, settings),
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
    """Return a section of zero_optimization with the device for `offload`. Raise InputError if the file disables it.

    key: offload_optimizer or offload_param
    """
    section: dict[str, Any] = {"device": "cpu"} | (file.section("zero_optimization").get(key) or {})
    if section["device"] == "none":
        found = f"enabled, and disabled in {file.path}, key zero_optimization.{key}.device"
        raise InputError(Problem("offload", found, "the same value", 'omit offload, or set the key to "cpu"'))
    return section


_ADAM = ("adam", "adamw")
_FOR_GPUS = ("lamb", "lion", "muon")
_OF_MUP = ("muadam", "muadamw", "musgd")
_SCHEDULES = ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
_SAME_AS = {"lr": "learning_rate", "weight_decay": "weight_decay"}
"""Parameters that are also inputs of a training, with the names of the inputs."""

SCHEDULE_PARAMETERS = {
    "WarmupLR": ("warmup_max_lr", "warmup_num_steps"),
    "WarmupDecayLR": ("warmup_max_lr", "warmup_num_steps", "total_num_steps"),
    "WarmupCosineLR": ("warmup_num_steps", "total_num_steps"),
}
"""Parameters of a schedule that default to values of the training."""


def optimizer_sections(
    file: DeepSpeedFile, optimizer: optim.Optimizer, device: torch.device, settings: TrainingSettings
) -> dict[str, Any]:
    """Return the sections "optimizer" and "scheduler", if the file has them, without "auto".

    optimizer: the training loop's, whose values "auto" stands for. Without a learning rate or weight decay, the file's
               optimizer has the loop's, as it does without "auto"
    settings:  has the steps that "auto" stands for in the scheduler

    Raise InputError for an optimizer that is unknown or does not run on the device, for a learning rate or weight decay
    other than the loop's, and for "auto" without such a value.
    """
    found: dict[str, Any] = {}
    if section := file.section("optimizer"):
        kind = _kind(file, "optimizer", section)
        _check_optimizer(file, kind, device)
        params = {
            name: _parameter(file, optimizer, name, value) for name, value in dict(section.get("params") or {}).items()
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


def optimizer_parameters(optimizer: optim.Optimizer) -> list[dict[str, Any]]:
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
    """Return whether an optimizer has the parameter lr or weight_decay. All of DeepSpeed's own have both."""
    known = getattr(optim, kind, None)
    return known is None or name in signature(known).parameters


def _parameter(file: DeepSpeedFile, optimizer: optim.Optimizer, name: str, value: Any) -> Any:
    group = optimizer.param_groups[0]
    if value == "auto" and name not in group:
        raise file.error(f"optimizer.params.{name}", '"auto"', "a value: the loop's optimizer has none")
    if value == "auto":
        return group[name]
    if name in _SAME_AS and name in group:
        file.agree(_SAME_AS[name], group[name], f"optimizer.params.{name}", value)
    return value


_OWN_PRECISIONS = {"bf16": "bfloat16", "fp16": "float16"}
"""DeepSpeed's own mixed precisions: 16-bit weights, with float32 copies in the optimizer."""

_BFLOAT16 = ("bf16", "bfloat16", "torch.bfloat16")


def automatic_for_deepspeed(file: DeepSpeedFile, stage: int | None, device: torch.device) -> str:
    """Return the precision that "auto" stands for: the one that the file enables, otherwise that of the device.

    float32 where the file disables the device's, or where that is float16 and the stage is 0, which has no 16-bit
    weights.

    stage: ZeRO's; None for a training without DeepSpeed
    """
    for key, name in (*_OWN_PRECISIONS.items(), ("torch_autocast", "bfloat16")):
        if file.enabled(key) is True:
            return name
    found = preparation.automatic_precision(device)
    is_disabled = any(file.enabled(key) is False for key, name in _OWN_PRECISIONS.items() if name == found)
    return "float32" if is_disabled or (found == "float16" and stage == 0) else found


def precision_sections(
    precision: str | None, file: DeepSpeedFile, stage: int, device: torch.device
) -> tuple[str | None, dict[str, Any]]:
    """Return the precision in effect, and the sections of DeepSpeed's configuration for it.

    bfloat16 keeps float32 weights unless the file has the section bf16, and float16 always uses DeepSpeed's own, which
    scales the loss. Raise InputError if the file contradicts the setting or the device, or for 16-bit weights without
    ZeRO.
    """
    for key in (*_OWN_PRECISIONS, "torch_autocast"):
        if (enabled := file.enabled(key)) not in (None, "auto") and not isinstance(enabled, bool):
            raise file.error(f"{key}.enabled", repr(enabled), 'true, false or "auto"')
    if precision == AUTO:
        precision = automatic_for_deepspeed(file, stage, device)
    for key, name in _OWN_PRECISIONS.items():
        enabled = file.enabled(key)
        if enabled is True:
            precision = file.agree("precision", precision, key, name)
        elif enabled is False and precision == name:
            found = f"{precision}, and {key} is disabled in {file.path}"
            expected = "the same precision"
            raise InputError(Problem("precision", found, expected, f'set {key}.enabled to "auto", or change precision'))
    autocast = file.section("torch_autocast")
    if file.enabled("torch_autocast") is True:
        if str(autocast.get("dtype", "bfloat16")) not in _BFLOAT16:
            reason = "bfloat16: the engine does not report steps that were skipped in float16"
            raise file.error("torch_autocast.dtype", str(autocast["dtype"]), reason, "use the section fp16")
        precision = file.agree("precision", precision, "torch_autocast", "bfloat16")
    for key, name in _OWN_PRECISIONS.items():
        if precision == name and (file.enabled(key) in (True, "auto") or name == "float16"):
            _check_16bit(file, key, name, stage, device)
            return precision, {key: file.section(key) | {"enabled": True}}
    if file.enabled("torch_autocast") is True:
        return precision, {"torch_autocast": autocast}
    if precision == "bfloat16" and stage == 3:
        # The model is under autocast. This gathers and reduces the weights that autocast converts in bfloat16 too.
        return precision, {"torch_autocast": {"enabled": True, "dtype": "bfloat16"}}
    return precision, {}


def _check_16bit(file: DeepSpeedFile, key: str, precision: str, stage: int, device: torch.device) -> None:
    by_file = file.enabled(key) is True
    where = f"{file.path}, key {key}" if by_file else "precision"
    if precision == "float16" and device.type == "cpu":
        found = "float16 with the strategy deepspeed, on the CPU"
        expected = "float32 or bfloat16: DeepSpeed has no float16 without a GPU"
        raise InputError(Problem(where, found, expected, "use bfloat16, or the strategy ddp or fsdp"))
    if stage == 0:
        found = f"16-bit weights ({key}) with ZeRO stage 0"
        expected = "ZeRO 1, 2 or 3: checkpoints have their float32 copies of the weights"
        raise InputError(Problem(where, found, expected, "use deepspeed_stage 1, or the strategy ddp"))
