"""The newest version of a model in MLflow's registry, which on Azure ML is the workspace's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class RegistryError(Exception):
    """The registry cannot be asked, or refused. The message says why and what to do."""


@dataclass(frozen=True)
class Version:
    """A registered version of a model."""

    number: str
    tags: Mapping[str, str]


def require_address() -> None:
    """Raises RegistryError where nothing says where the registry is: MLflow would make one of its own."""
    if not os.environ.get("MLFLOW_TRACKING_URI"):
        raise RegistryError("MLFLOW_TRACKING_URI is not set, so there is no registry. Set it to MLflow's address.")


def newest(name: str) -> Version | None:
    """The version with the highest number, or None where the model has none.

    Raises RegistryError for anything but a plain no: what cannot be asked for may well be there.
    """
    require_address()
    if not name or "'" in name:
        raise RegistryError(f"{name!r} is no model's name. Give one without quotes.")
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient

    try:
        found: list[Any] = list(MlflowClient().search_model_versions(f"name='{name}'"))
        if not found:
            return None
        number = max((str(version.version) for version in found), key=int)
        # Some registries leave tags out of a search's answer.
        return Version(number, dict(MlflowClient().get_model_version(name, number).tags))
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise RegistryError(f"MLflow did not say which versions {name!r} has: {error}") from None
