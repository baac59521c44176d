"""Read a metric of an evaluation, and compare its values."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks_steps.messages import bad_input

ROUNDING = 1e-9
"""Tolerance for rounding errors, such as in differences of fractions."""


@dataclass(frozen=True)
class Metric:
    """name: of the metric in metrics.json; goal: maximize or minimize, as in Azure ML's sweep jobs"""

    name: str = "accuracy"
    goal: str = "maximize"

    def gain(self, value: float, reference: float) -> float:
        """Return the improvement of the value over the reference, negative if it is worse."""
        return value - reference if self.goal == "maximize" else reference - value

    def reaches(self, value: float, threshold: float) -> bool:
        """Return whether the value is as good as the threshold, or better."""
        return self.gain(value, threshold) >= -ROUNDING

    def exceeds(self, value: float, reference: float, margin: float = 0.0) -> bool:
        """Return whether the value is better than the reference, and by at least the margin."""
        gain = self.gain(value, reference)
        return gain > ROUNDING and gain >= margin - ROUNDING

    def miss(self, value: float, threshold: float) -> str:
        """Return the message that the value misses the threshold."""
        side = "below the minimum" if self.goal == "maximize" else "above the maximum"
        return f"{self.name} {value:.4f} is {side} of {threshold:.4f}"


def read_metrics(folder: Path) -> dict[str, Any]:
    """Return the content of metrics.json, which an evaluation wrote to the folder. Raise InputError."""
    file = folder / "metrics.json"
    try:
        metrics = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _problem(f"{file} cannot be read: {error}", fix="give the output `metrics` of an evaluation") from None
    if not isinstance(metrics, dict):
        raise _problem(f"{file} holds a {type(metrics).__name__}", "a JSON object of metrics by name")
    return metrics


def metric_value(metrics: dict[str, Any], name: str, folder: Path) -> float:
    """Return the value of a metric. Raise InputError if it is missing, or not a finite number.

    folder: where the metrics were read from, for the message
    """
    value = metrics.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    found = f"{name} is {value!r}" if name in metrics else f"no {name}"
    numbers = sorted(key for key, other in metrics.items() if isinstance(other, int | float))
    known = f"it has {', '.join(numbers)}" if numbers else "it has no number"
    raise _problem(f"{folder / 'metrics.json'}: {found}; {known}", "a finite number")


def baseline_value(metrics: dict[str, Any], name: str, folder: Path) -> float | None:
    """Return the baseline's value of a metric; None if the evaluation had no baseline. Raise InputError."""
    baseline = metrics.get("baseline")
    if baseline is None:
        return None
    if not isinstance(baseline, dict):
        raise _problem(f"{folder / 'metrics.json'}: baseline is {baseline!r}", "an object or null")
    return metric_value(baseline, name, folder)


def _problem(found: str, expected: str = "", fix: str = "") -> InputError:
    return bad_input("input metrics", found, expected, fix)
