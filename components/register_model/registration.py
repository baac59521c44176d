"""Register a model if its metrics allow it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


class CannotRegister(Exception):
    """The model cannot be registered. The message says why and what to do; the registry is unchanged."""


@dataclass(frozen=True)
class Registration:
    """The result of a registration. The version is None if the accuracy was too low."""

    name: str
    version: str | None
    accuracy: float
    minimum_accuracy: float

    def __str__(self) -> str:
        accuracy = f"accuracy {self.accuracy:.4f}"
        if self.version is None:
            return f"not registered as {self.name}: {accuracy} is below the minimum of {self.minimum_accuracy:.4f}"
        return f"registered as {self.name}, version {self.version}: {accuracy}"


def register(model: Path, metrics: Path, name: str, minimum_accuracy: float, output: Path) -> Registration:
    """Register the model if its accuracy is at least the minimum, and write registration.json either way.

    Raise CannotRegister if there is no registry, no model or no accuracy.
    """
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        raise CannotRegister("MLFLOW_TRACKING_URI is not set, so there is no registry. Set it to MLflow's address.")
    if not (model / "MLmodel").is_file():
        raise CannotRegister(f"{model} holds no file MLmodel. Give a model in MLflow's format.")
    require_flavors(model / "MLmodel")
    scores = read_metrics(metrics)
    accuracy = scores["accuracy"]
    version = new_version(model, name, scores) if accuracy >= minimum_accuracy else None
    registration = Registration(name, version, accuracy, minimum_accuracy)
    output.mkdir(parents=True, exist_ok=True)
    (output / "registration.json").write_text(json.dumps(asdict(registration), indent=2) + "\n", encoding="utf-8")
    return registration


def require_flavors(file: Path) -> None:
    """Raise CannotRegister if the file MLmodel describes no model: MLflow would register one that nothing can load."""
    import yaml

    try:
        flavors = yaml.safe_load(file.read_text(encoding="utf-8"))["flavors"]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        flavors = None
    if not isinstance(flavors, dict) or not flavors:
        raise CannotRegister(f"{file} names no flavors, so it describes no model. Give a model in MLflow's format.")


def read_metrics(folder: Path) -> dict[str, Any]:
    """Return the content of metrics.json. Raise CannotRegister if it holds no accuracy."""
    file = folder / "metrics.json"
    try:
        metrics: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        float(metrics["accuracy"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotRegister(
            f"{file} gives no accuracy ({error!r}). Give the output `metrics` of an evaluation."
        ) from None
    return metrics


def new_version(model: Path, name: str, metrics: dict[str, Any]) -> str:
    """Register the model as a new version of that name, and return the version.

    The files are logged as artifacts of this run first: Azure ML registers a run's artifacts, and its tracking server
    does not support the logged models that MLflow 3's log_model creates (azure-sdk-for-python#44896).
    Tags are strings whose names have no colon (mlflow#8008).
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    try:
        with mlflow.start_run() as run:
            mlflow.log_artifacts(str(model), "model")
            tags = {
                "accuracy": f"{metrics['accuracy']:.4f}",
                "data": str(metrics.get("source", "")),
                "run": run.info.run_id,
            }
            return str(mlflow.register_model(f"runs:/{run.info.run_id}/model", name, tags=tags).version)
    except MlflowException as error:
        raise CannotRegister(f"MLflow refused {name!r}: {error}") from None
