"""A model in the format of MLflow's PyTorch flavor, as an input of a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from allranks.errors import InputError, Problem
from allranks.runtime.metrics.mlflow_pytorch import mlflow_pytorch
from allranks_steps.messages import first_line


def read_info(folder: Path, where: str, expected: str, fix: str = "") -> Any:
    """Return MLflow's ModelInfo of the folder. Raise InputError if it does not hold a model of the PyTorch flavor.

    where, expected, fix: for the message
    """
    if not (folder / "MLmodel").is_file():
        raise InputError(Problem(where, f"{folder} holds no file MLmodel", expected, fix))
    mlflow_pytorch()
    from mlflow.models import get_model_info

    try:
        info = get_model_info(str(folder))
    except Exception as error:  # of MLflow or of its YAML parser
        found = f"{folder / 'MLmodel'} cannot be read: {first_line(error)}"
        raise InputError(Problem(where, found, expected, fix)) from error
    if "pytorch" not in info.flavors:
        kinds = ", ".join(kind for kind in info.flavors if kind != "python_function") or "another kind"
        raise InputError(Problem(where, f"a model of the flavor {kinds}", expected, fix))
    return info


def load_model(folder: Path, where: str, fix: str = "") -> nn.Module:
    """Return the model. Raise InputError if it cannot be loaded."""
    try:
        model: nn.Module = mlflow_pytorch().load_model(str(folder))
    except Exception as error:  # loading runs code of the model
        found = f"{folder} cannot be loaded: {first_line(error)}"
        raise InputError(Problem(where, found, "a whole model", fix)) from error
    return model
