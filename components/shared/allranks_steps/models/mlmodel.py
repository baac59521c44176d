"""A model in MLflow's format, as an input of a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks_steps.messages import first_line

EXPECTED = "a model in MLflow's format"


def read_mlmodel(folder: Path, where: str = "input model", fix: str = "") -> dict[str, Any]:
    """Return the content of MLmodel. Raise InputError if it describes no model: MLflow would register it all the same.

    where, fix: for the message
    """
    import yaml

    file = folder / "MLmodel"
    if not file.is_file():
        raise InputError(Problem(where, f"{folder} holds no file MLmodel", EXPECTED, fix))
    try:
        described = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        described = None
    if not isinstance(described, dict) or not isinstance(described.get("flavors"), dict) or not described["flavors"]:
        raise InputError(Problem(where, f"{file} names no flavors, so it describes no model", EXPECTED, fix))
    return described


def load_model(flavor: Any, folder: Path, where: str = "input model", fix: str = "") -> Any:
    """Return the model of a folder. Raise InputError if it cannot be loaded.

    flavor:     MLflow's module that loads it, such as mlflow.pyfunc
    where, fix: for the message
    """
    try:
        return flavor.load_model(str(folder))
    except Exception as error:  # loading runs code of the model
        found = f"{folder} cannot be loaded: {first_line(error)}"
        raise InputError(Problem(where, found, "a whole model", fix)) from error
