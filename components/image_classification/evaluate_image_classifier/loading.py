"""Load a classifier in MLflow's format. Raise InputError for a model of another kind."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx, nn

from allranks.errors import InputError
from allranks.runtime.metrics.tracking import mlflow_pytorch
from allranks_steps.images.image_data.images import ImageData
from allranks_steps.messages import bad_input, first_line
from allranks_steps.models.mlmodel import load_model, read_mlmodel

FIX = "give the output `model` of train_image_classifier, or another model that does the same"


def load(folder: Path, data: ImageData, device: torch.device, name: str) -> tuple[nn.Module, tuple[int, int]]:
    """Return the model of an MLflow folder, and the height and width of the pixels that it takes.

    name: of the input, for messages

    Raise InputError if the folder has no model, or if it does not take the pixels of these images and return a score
    for each of their classes.
    """
    where = f"input {name}"
    image_size = _check_description(read_mlmodel(folder, where, FIX, "pytorch"), data, name)
    model = _moved(load_model(mlflow_pytorch(), folder, where, FIX), device)
    with contextlib.suppress(NotImplementedError):  # an exported graph is in the mode that it was exported in
        model.eval()
    _check_scores(model, (data.channels, *image_size), len(data.classes), device, name)
    return model, image_size


def _moved(model: nn.Module, device: torch.device) -> nn.Module:
    """Move a model, also an exported graph, which names the device on which it creates tensors."""
    if isinstance(model, fx.GraphModule):
        for node in model.graph.nodes:
            if "device" in node.kwargs:
                node.kwargs = {**node.kwargs, "device": device}
        model.recompile()
    return model.to(device)


def _check_description(described: Mapping[str, Any], data: ImageData, name: str) -> tuple[int, int]:
    """Return the height and width of the pixels that the model takes. Raise InputError if MLmodel describes a model of
    another kind."""
    from mlflow.models import ModelSignature

    classes = (described.get("metadata") or {}).get("classes")
    if classes and list(classes) != list(data.classes):
        raise _problem(name, f"its classes are {_few(classes)}", f"those of the data, {_few(data.classes)}")
    signature = ModelSignature.from_dict(described.get("signature") or {})
    inputs = signature.inputs.inputs if signature.inputs else []
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
        raise _problem(name, f"it fails on pixels: {first_line(error)}", _pixels(pixels)) from error
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
    return bad_input(f"input {name}", found, expected, FIX)
