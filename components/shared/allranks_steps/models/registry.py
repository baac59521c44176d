"""Versions of a model in MLflow's registry, which on Azure ML is the workspace's."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks_steps.messages import bad_input


@dataclass(frozen=True)
class Version:
    """A registered version of a model."""

    number: str
    tags: Mapping[str, str]


def require_address() -> None:
    """Raise InputError if no registry is configured: MLflow would create one of its own."""
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        raise bad_input("MLFLOW_TRACKING_URI", "it is not set, so there is no registry", "MLflow's address")


def newest(name: str) -> Version | None:
    """Return the version with the highest number; None if the model has no version.

    Raise InputError if the look-up fails, because the model may exist.
    """
    require_address()
    if not name or "'" in name:
        raise bad_input("input name", repr(name), "the name of a model, without quotes")
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    try:
        versions: list[Any] = list(MlflowClient().search_model_versions(f"name='{name}'"))
        if not versions:
            return None
        number = max((str(version.version) for version in versions), key=int)
        # Some registries omit the tags from search results.
        return Version(number, dict(MlflowClient().get_model_version(name, number).tags))
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise registry_error(f"the versions of {name!r} cannot be listed: {error}") from None


def register(model: Path, name: str, tags: Mapping[str, str], *, beside: tuple[Path, ...] = ()) -> str:
    """Register the model as a new version of a name, with tags and the id of this run, and return the version.

    beside: further files for the model's folder

    Raise InputError if the registry refuses.

    The files are logged as artifacts of this run first: Azure ML registers a run's artifacts, and its tracking server
    does not support the logged models that MLflow 3's log_model creates (azure-sdk-for-python#44896).
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    try:
        with mlflow.start_run() as run:
            mlflow.log_artifacts(str(model), "model")
            for file in beside:
                mlflow.log_artifact(str(file), "model")
            run_id = run.info.run_id
            version = mlflow.register_model(f"runs:/{run_id}/model", name, tags={**tags, "run": run_id})
            return str(version.version)
    except (MlflowException, OSError) as error:
        raise registry_error(f"MLflow refused {name!r}: {error}") from None


def registry_error(found: str) -> InputError:
    """Return the error for a registry that cannot be reached, or refuses a request."""
    return bad_input("registry", found)
