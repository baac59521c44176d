"""Import MLflow's client without what it only needs to train, evaluate, trace and serve models.

That is more than half of the time. The tracker process stores runs, metrics and tags, nothing else. If it uses a name
of a deferred module, that module is loaded then.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from allranks.deferred_imports import DeferredImports, forget

DEFERRED = (
    "mlflow.gateway",
    "mlflow.genai",
    "mlflow.models",
    "mlflow.projects",
    "mlflow.store._unity_catalog",
    "mlflow.store.artifact.databricks_artifact_repo",
    "mlflow.tracing.display",
    "mlflow.tracing.fluent",
    "pandas",
    "pyarrow",
)

_STORES = ("mlflow.store.tracking.sqlalchemy_store", "mlflow.store.model_registry.sqlalchemy_store")
"""What the client imports when it opens a database."""


def import_client() -> Callable[[str], Any]:
    """Return `mlflow.tracking.MlflowClient`. Import it as usual if this version of MLflow has another structure."""
    before = set(sys.modules)
    try:
        with DeferredImports(DEFERRED):
            _import()
    except Exception:
        for name in set(sys.modules) - before:
            if name == "mlflow" or name.startswith("mlflow."):
                forget(name)
        _import()
    return importlib.import_module("mlflow.tracking").MlflowClient  # type: ignore[no-any-return]


def _import() -> None:
    for name in ("mlflow.tracking", *_STORES):
        importlib.import_module(name)
