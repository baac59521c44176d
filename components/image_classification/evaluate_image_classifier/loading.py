"""Load a classifier in MLflow's format. A model of another kind is refused with a message."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from allranks.errors import InputError, Problem
from allranks.runtime.mlflow_pytorch import mlflow_pytorch
from allranks_steps.images.image_data.images import ImageData

FIX = "give the output `model` of train_image_classifier, or another model that does the same"


@dataclass(frozen=True)
class Loaded:
    """model: maps pixels to scores; image_size: height and width of the pixels"""

    model: nn.Module
    image_size: tuple[int, int]


def load(folder: Path, data: ImageData, device: torch.device, name: str = "model") -> Loaded:
    """Load the model of an MLflow folder. name: of the input, for messages

    Raise InputError if there is none, or if it does not take the pixels of these images and give a score for each of
    their classes.
    """
    if not (folder / "MLmodel").is_file():
        raise _problem(name, f"{folder} holds no file MLmodel", "an MLflow model")
    flavor = mlflow_pytorch()
    image_size = _check_description(folder, data, name)
    try:
        model: nn.Module = _moved(flavor.load_model(str(folder)), device)
    except Exception as error:  # loading runs code of the model
        raise _problem(name, f"{folder} cannot be loaded: {_first_line(error)}", "a whole model") from error
    with contextlib.suppress(NotImplementedError):  # an exported graph is in the mode that it was exported in
        model.eval()
    _check_scores(model, (data.channels, *image_size), len(data.classes), device, name)
    return Loaded(model, image_size)


def _moved(model: nn.Module, device: torch.device) -> nn.Module:
    """Move a model, also an exported graph, which names the device on which it creates tensors."""
    if isinstance(model, fx.GraphModule):
        for node in model.graph.nodes:
            if "device" in node.kwargs:
                node.kwargs = {**node.kwargs, "device": device}
        model.recompile()
    return model.to(device)


def _check_description(folder: Path, data: ImageData, name: str) -> tuple[int, int]:
    """Return the height and width of the pixels that the model takes. Raise InputError if the file MLmodel describes a
    model of another kind."""
    from mlflow.models import get_model_info

    try:
        about = get_model_info(str(folder))
    except Exception as error:  # of MLflow or of its YAML parser
        raise _problem(name, f"{folder / 'MLmodel'} cannot be read: {_first_line(error)}", "an MLflow model") from error
    if "pytorch" not in about.flavors:
        kinds = ", ".join(kind for kind in about.flavors if kind != "python_function") or "another kind"
        raise _problem(name, f"a model of the flavor {kinds}", "a model of MLflow's PyTorch flavor")
    metadata: Mapping[str, Any] = about.metadata or {}
    classes = metadata.get("classes")
    if classes and list(classes) != list(data.classes):
        raise _problem(name, f"its classes are {_few(classes)}", f"those of the data, {_few(data.classes)}")
    inputs = about.signature.inputs.inputs if about.signature and about.signature.inputs else []
    declared = _shape(inputs[0]) if inputs else None
    size = data.size
    if size is None and declared is not None and len(declared) == 4 and min(declared[2:]) > 0:
        size = (declared[2], declared[3])
    if size is None:
        raise _problem(name, "it does not say which size of images it takes", "a signature with a height and a width")
    expected = (data.channels, *size)
    if inputs and declared is None:
        raise _problem(name, "it takes a table with columns", _pixels(expected))
    if inputs and (inputs[0].type != np.uint8 or not _fits(declared or (), expected)):
        raise _problem(name, f"it takes {inputs[0].type} of shape {declared}", _pixels(expected))
    return size


def _check_scores(
    model: nn.Module, pixels: tuple[int, int, int], class_count: int, device: torch.device, name: str
) -> None:
    """Raise InputError if the model does not give a score for each class of a black image."""
    black = torch.zeros((2, *pixels), dtype=torch.uint8, device=device)
    try:
        with torch.no_grad():
            scores: Any = model(black)
    except Exception as error:  # whatever the model raises for pixels that are not its own
        raise _problem(name, f"it fails on pixels: {_first_line(error)}", _pixels(pixels)) from error
    expected = f"a score for each of the {class_count} classes of the data"
    if not isinstance(scores, torch.Tensor):
        raise _problem(name, f"it gives a {type(scores).__name__}", expected)
    if tuple(scores.shape) != (2, class_count):
        raise _problem(name, f"for 2 images it gives numbers of shape {tuple(scores.shape)}", expected)


def _pixels(pixels: tuple[int, int, int]) -> str:
    return f"a model that takes the pixels of these images: uint8 of shape {(-1, *pixels)}"


def _few(classes: Any) -> str:
    names = [str(name) for name in classes]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} others" if len(names) > 5 else "")


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
