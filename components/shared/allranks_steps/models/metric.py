"""A metric of an evaluation, and which of two of its values is better."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GOALS = ("maximize", "minimize")
"""The words of Azure ML's sweep jobs for which value of a metric is better."""

ROUNDING = 1e-9
"""Tolerance for rounding errors, such as in differences of fractions."""


class BadMetrics(Exception):
    """The metrics cannot be used. The message names the file and says what to give."""


@dataclass(frozen=True)
class Metric:
    """name: of the metric in metrics.json; goal: one of GOALS"""

    name: str = "accuracy"
    goal: str = "maximize"

    def gain(self, value: float, reference: float) -> float:
        """Return by how much the value is better than the reference; a negative number if it is worse."""
        return value - reference if self.goal == "maximize" else reference - value

    def reaches(self, value: float, threshold: float) -> bool:
        """Return whether the value is as good as the threshold, or better."""
        return self.gain(value, threshold) >= -ROUNDING

    def exceeds(self, value: float, reference: float, margin: float = 0.0) -> bool:
        """Return whether the value is better than the reference, and by at least the margin."""
        gain = self.gain(value, reference)
        return gain > ROUNDING and gain >= margin - ROUNDING


def read_metrics(folder: Path) -> dict[str, Any]:
    """Return the content of metrics.json, which an evaluation wrote to the folder. Raise BadMetrics."""
    file = folder / "metrics.json"
    try:
        metrics = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadMetrics(f"{file} cannot be read ({error}). Give the output `metrics` of an evaluation.") from None
    if not isinstance(metrics, dict):
        raise BadMetrics(f"{file} holds a {type(metrics).__name__}. Give a JSON object of metrics by name.")
    return metrics


def value_of(metrics: dict[str, Any], name: str, folder: Path) -> float:
    """Return the value of a metric. Raise BadMetrics if it is missing, or not a finite number.

    folder: where the metrics were read from, for the message
    """
    value = metrics.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    found = f"{name} is {value!r}" if name in metrics else f"no {name}"
    numbers = sorted(key for key, other in metrics.items() if isinstance(other, int | float))
    known = f"It has {', '.join(numbers)}." if numbers else "It has no number."
    raise BadMetrics(f"{folder / 'metrics.json'}: {found}, which must be a finite number. {known}")


def baseline_of(metrics: dict[str, Any], name: str, folder: Path) -> float | None:
    """Return the baseline's value of a metric; None if the evaluation had no baseline. Raise BadMetrics."""
    baseline = metrics.get("baseline")
    if baseline is None:
        return None
    if not isinstance(baseline, dict):
        raise BadMetrics(f"{folder / 'metrics.json'}: baseline is {baseline!r}, which must be an object or null.")
    return value_of(baseline, name, folder)
