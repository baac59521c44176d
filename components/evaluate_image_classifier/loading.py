"""Load a classifier in MLflow's format. A model of another kind is refused with a message."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from prepared_images import Description
from torch import nn

from allranks.errors import InputError, Problem
from allranks.runtime.mlflow_pytorch import mlflow_pytorch

FIX = "give the output `model` of train_image_classifier, or another model that does the same"


def load(folder: Path, description: Description, device: torch.device, name: str = "model") -> nn.Module:
    """Load the model of an MLflow folder. name: of the input, for messages

    Raise InputError if there is none, or if it does not take the pixels of these images and give a score for each of
    their classes.
    """
    if not (folder / "MLmodel").is_file():
        raise _problem(name, f"{folder} holds no file MLmodel", "an MLflow model")
    flavor = mlflow_pytorch()
    _check_description(folder, description, name)
    try:
        model: nn.Module = flavor.load_model(str(folder)).to(device)
    except Exception as error:  # loading runs code of the model
        raise _problem(name, f"{folder} cannot be loaded: {_first_line(error)}", "a whole model") from error
    with contextlib.suppress(NotImplementedError):  # an exported graph is in the mode that it was exported in
        model.eval()
    _check_scores(model, description, device, name)
    return model


def _check_description(folder: Path, description: Description, name: str) -> None:
    """Raise InputError if the file MLmodel describes a model of another kind."""
    from mlflow.models import get_model_info

    try:
        about = get_model_info(str(folder))
    except Exception as error:  # of MLflow or of its YAML parser
        raise _problem(name, f"{folder / 'MLmodel'} cannot be read: {_first_line(error)}", "an MLflow model") from error
    if "pytorch" not in about.flavors:
        kinds = ", ".join(kind for kind in about.flavors if kind != "python_function") or "another kind"
        raise _problem(name, f"a model of the flavor {kinds}", "a model of MLflow's PyTorch flavor")
    inputs = about.signature.inputs.inputs if about.signature and about.signature.inputs else []
    if inputs and _shape(inputs[0]) is None:
        raise _problem(name, "it takes a table with columns", _pixels(description))
    if inputs and (inputs[0].type != np.uint8 or not _fits(_shape(inputs[0]) or (), description.shape)):
        raise _problem(name, f"it takes {inputs[0].type} of shape {_shape(inputs[0])}", _pixels(description))


def _check_scores(model: nn.Module, description: Description, device: torch.device, name: str) -> None:
    """Raise InputError if the model does not give a score for each class of a black image."""
    black = torch.zeros((2, *description.shape), dtype=torch.uint8, device=device)
    try:
        with torch.no_grad():
            scores: Any = model(black)
    except Exception as error:  # whatever the model raises for pixels that are not its own
        raise _problem(name, f"it fails on pixels: {_first_line(error)}", _pixels(description)) from error
    expected = f"a score for each of the {len(description.classes)} classes of the data"
    if not isinstance(scores, torch.Tensor):
        raise _problem(name, f"it gives a {type(scores).__name__}", expected)
    if tuple(scores.shape) != (2, len(description.classes)):
        raise _problem(name, f"for 2 images it gives numbers of shape {tuple(scores.shape)}", expected)


def _pixels(description: Description) -> str:
    return f"a model that takes the pixels of these images: uint8 of shape {(-1, *description.shape)}"


def _shape(spec: Any) -> tuple[int, ...] | None:
    """Return the shape of a signature's tensor; None for a column of a table."""
    return tuple(spec.shape) if hasattr(spec, "shape") else None


def _fits(declared: tuple[int, ...], image: tuple[int, ...]) -> bool:
    """Return whether a tensor of the declared shape holds such images. -1 stands for any number."""
    return len(declared) == len(image) + 1 and all(
        size in (-1, own) for size, own in zip(declared[1:], image, strict=True)
    )


def _problem(name: str, found: str, expected: str) -> InputError:
    return InputError(Problem(f"input {name}", found, expected, FIX))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
