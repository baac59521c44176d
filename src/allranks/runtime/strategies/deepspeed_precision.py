"""The precision of a training under DeepSpeed."""

from __future__ import annotations

from typing import Any

import torch

from allranks.errors import InputError, Problem
from allranks.runtime.strategies import precision as precisions
from allranks.runtime.strategies.deepspeed_file import DeepSpeedFile
from allranks.runtime.strategies.settings import AUTO

_SECTIONS = {"bf16": "bfloat16", "fp16": "float16"}
"""DeepSpeed's own mixed precisions: 16-bit weights, with float32 copies in the optimizer."""

_BFLOAT16 = ("bf16", "bfloat16", "torch.bfloat16")


def automatic(file: DeepSpeedFile, stage: int | None, device: torch.device) -> str:
    """Return the precision that "auto" stands for: the one that the file enables, otherwise that of the device.

    float32 where the file disables the device's, or where that is float16 and the stage is 0, which has no 16-bit
    weights.

    stage: ZeRO's; None for a training without DeepSpeed
    """
    for key, name in (*_SECTIONS.items(), ("torch_autocast", "bfloat16")):
        if file.section(key).get("enabled") is True:
            return name
    found = precisions.automatic(device)
    is_disabled = any(file.section(key).get("enabled") is False for key, name in _SECTIONS.items() if name == found)
    return "float32" if is_disabled or (found == "float16" and stage == 0) else found


def sections(
    precision: str | None, file: DeepSpeedFile, stage: int, device: torch.device
) -> tuple[str | None, dict[str, Any]]:
    """Return the precision in effect, and the sections of DeepSpeed's configuration for it.

    bfloat16 keeps float32 weights unless the file has the section bf16, and float16 always uses DeepSpeed's own, which
    scales the loss. Raise InputError if the file contradicts the setting or the device, or for 16-bit weights without
    ZeRO.
    """
    for key in (*_SECTIONS, "torch_autocast"):
        if (enabled := file.section(key).get("enabled")) not in (None, "auto") and not isinstance(enabled, bool):
            raise file.error(f"{key}.enabled", repr(enabled), 'true, false or "auto"')
    if precision == AUTO:
        precision = automatic(file, stage, device)
    for key, name in _SECTIONS.items():
        enabled = file.section(key).get("enabled")
        if enabled is True:
            precision = file.agree("precision", precision, key, name)
        elif enabled is False and precision == name:
            raise _contradiction(file, precision, key)
    autocast = file.section("torch_autocast")
    if autocast.get("enabled") is True:
        if str(autocast.get("dtype", "bfloat16")) not in _BFLOAT16:
            reason = "bfloat16: the engine does not report steps that were skipped in float16"
            raise file.error("torch_autocast.dtype", str(autocast["dtype"]), reason, "use the section fp16")
        precision = file.agree("precision", precision, "torch_autocast", "bfloat16")
    for key, name in _SECTIONS.items():
        wanted = file.section(key).get("enabled") in (True, "auto") or name == "float16"
        if precision == name and wanted:
            _check(file, key, name, stage, device)
            return precision, {key: file.section(key) | {"enabled": True}}
    if autocast.get("enabled") is True:
        return precision, {"torch_autocast": autocast}
    if precision == "bfloat16" and stage == 3:
        # The model is under autocast. This gathers and reduces the weights that autocast converts in bfloat16 too.
        return precision, {"torch_autocast": {"enabled": True, "dtype": "bfloat16"}}
    return precision, {}


def _check(file: DeepSpeedFile, key: str, precision: str, stage: int, device: torch.device) -> None:
    by_file = file.section(key).get("enabled") is True
    where = f"{file.path}, key {key}" if by_file else "precision"
    if precision == "float16" and device.type == "cpu":
        raise InputError(
            Problem(
                where=where,
                found="float16 with the strategy deepspeed, on the CPU",
                expected="float32 or bfloat16: DeepSpeed has no float16 without a GPU",
                fix="use bfloat16, or the strategy ddp or fsdp",
            )
        )
    if stage == 0:
        raise InputError(
            Problem(
                where=where,
                found=f"16-bit weights ({key}) with ZeRO stage 0",
                expected="ZeRO 1, 2 or 3, whose float32 copies of the weights the checkpoints have",
                fix="use deepspeed_stage 1, or the strategy ddp",
            )
        )


def _contradiction(file: DeepSpeedFile, precision: str, key: str) -> InputError:
    return InputError(
        Problem(
            where="precision",
            found=f"{precision}, and {key} is disabled in {file.path}",
            expected="the same precision",
            fix=f'set {key}.enabled to "auto", or change precision',
        )
    )
