"""The file MLmodel, which describes a model in MLflow's format."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class BadModel(Exception):
    """A folder holds no model in MLflow's format. The message names the file."""


def read_mlmodel(folder: Path) -> dict[str, Any]:
    """Return the content of MLmodel. Raise BadModel if it describes no model: MLflow would register it all the same."""
    import yaml

    file = folder / "MLmodel"
    if not file.is_file():
        raise BadModel(f"{folder} holds no file MLmodel. Give a model in MLflow's format.")
    try:
        described = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        described = None
    if not isinstance(described, dict) or not isinstance(described.get("flavors"), dict) or not described["flavors"]:
        raise BadModel(f"{file} names no flavors, so it describes no model. Give a model in MLflow's format.")
    return described
