"""Register a model if its metric reaches a threshold."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from allranks_steps.models.metric import Metric, read_metrics, value_of
from allranks_steps.models.mlmodel import read_mlmodel
from allranks_steps.models.registry import register, require_address


@dataclass(frozen=True)
class Registration:
    """The result of a registration. version: None if the value misses the threshold; threshold: None for no bound"""

    name: str
    version: str | None
    metric: str
    value: float
    goal: str
    threshold: float | None

    def __str__(self) -> str:
        value = f"{self.metric} {self.value:.4f}"
        if self.version is None:
            missed = "below the minimum" if self.goal == "maximize" else "above the maximum"
            return f"not registered as {self.name}: {value} is {missed} of {self.threshold:.4f}"
        return f"registered as {self.name}, version {self.version}: {value}"


def register_if_good(
    model: Path, metrics: Path, name: str, metric: Metric, threshold: float | None, output: Path
) -> Registration:
    """Register the model if its metric reaches the threshold, and write registration.json either way.

    Raise RegistryError if there is no registry or it refuses, BadModel if there is no model, BadMetrics if the metric
    is missing.
    """
    require_address()
    read_mlmodel(model)
    scores = read_metrics(metrics)
    value = value_of(scores, metric.name, metrics)
    version = None
    if threshold is None or metric.reaches(value, threshold):
        # Tags are strings whose names have no colon (mlflow#8008).
        version = register(model, name, {metric.name: f"{value:.4f}", "data": str(scores.get("source", ""))})
    registration = Registration(name, version, metric.name, value, metric.goal, threshold)
    output.mkdir(parents=True, exist_ok=True)
    (output / "registration.json").write_text(json.dumps(asdict(registration), indent=2) + "\n", encoding="utf-8")
    return registration
