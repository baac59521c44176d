"""A user's JSON file with DeepSpeed's configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from allranks.errors import InputError, Problem

_T = TypeVar("_T")


@dataclass(frozen=True)
class DeepSpeedFile:
    """The content of a file, and its path; both are empty without a file."""

    path: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)

    def section(self, key: str) -> dict[str, Any]:
        """Return the values of a section; {} if the file does not have it. Raise InputError if it is none."""
        section = self.content.get(key)
        if section is None:
            return {}
        if not isinstance(section, dict):
            raise self.error(key, repr(section), "an object")
        return dict(section)

    def agree(self, setting: str, value: _T | None, key: str, found: _T | str | None) -> _T | None:
        """Return the value of a setting and of a key, which stand for the same: the one that is there, or None.

        Raise InputError if both are there and differ. "auto" in the file stands for the setting.
        """
        if found is None or found == "auto":
            return value
        if value is not None and value != found:
            raise InputError(
                Problem(
                    where=setting,
                    found=f"{value}, and {found} in {self.path}, key {key}",
                    expected="the same value",
                    fix=f'set {setting} to {found}, or the key to "auto"',
                )
            )
        return found  # type: ignore[return-value]

    def error(self, key: str, found: str, expected: str, fix: str = "") -> InputError:
        """Return the error of a key."""
        return InputError(Problem(f"{self.path}, key {key}", found, expected, fix))


def read(path: str | Path | None, where: str = "deepspeed_config") -> DeepSpeedFile:
    """Return the content of a file; nothing without a path. Raise InputError if it is not a JSON object.

    where: what gives the path, for the error
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


def batches(file: DeepSpeedFile, steps: int | None, batch_size: int | None, world_size: int) -> tuple[int, int | None]:
    """Return the backward passes per step, and the samples of a rank in each of them; None if they are not known.

    steps, batch_size: the same as settings, which the file must agree with; None: the file's

    Raise InputError for a number that cannot be, and if the file contradicts a setting or the number of ranks.
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
    if total is None or total == "auto":
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
