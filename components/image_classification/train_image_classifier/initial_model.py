"""The model that a training starts from: an MLflow model of this component, or a folder of Transformers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import AutoConfig, AutoModelForImageClassification, PretrainedConfig

from allranks.runtime.metrics.tracking import mlflow_pytorch
from allranks_steps.images.classifier import ImageClassifier
from allranks_steps.messages import bad_input, first_line
from allranks_steps.models.mlmodel import load_model, read_mlmodel

HEAD = "classifier."
"""Prefix of the names of the head's parameters, in every image model of Transformers."""


@dataclass(frozen=True)
class InitialModel:
    """A model to start from.

    where:     the input, for messages
    preset:    its name in PRESETS; None for a folder of Transformers
    config:    of the network
    weights:   state dict of the network
    classes:   that its head scores
    size:      height and width inside of the network; None if it takes any
    mean, std: for the normalisation of images; None if unknown
    """

    where: str
    preset: str | None
    config: PretrainedConfig
    weights: Mapping[str, Tensor]
    classes: tuple[str, ...]
    size: tuple[int, int] | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def read_mlflow(folder: Path) -> InitialModel:
    """Read the output `model` of a training. Raise InputError if the folder is not one."""
    where, fix = "input initial_model", "give the output `model` of train_image_classifier"
    metadata = read_mlmodel(folder, where, fix, "pytorch").get("metadata") or {}
    try:
        settings = dict(metadata["config"])
        config = AutoConfig.for_model(settings.pop("model_type"), **settings)
        preprocessing = metadata["preprocessing"]
        classes = tuple(metadata["classes"])
        mean, std = tuple(preprocessing["mean"]), tuple(preprocessing["std"])
        height, width = preprocessing["network_size"]
    except (KeyError, TypeError, ValueError) as error:
        found = f"its metadata does not describe the network ({error!r})"
        raise bad_input(where, found, fix=fix) from None
    weights = load_model(mlflow_pytorch(), folder, where).state_dict()
    network = {name.removeprefix("network."): value for name, value in weights.items() if name.startswith("network.")}
    return InitialModel(where, metadata.get("model"), config, network, classes, (height, width), mean, std)


def read_transformers(folder: Path) -> InitialModel:
    """Read a folder with config.json and weights, as save_pretrained of Transformers writes it. Raise InputError."""
    where, expected = "input pretrained_model", "a folder that save_pretrained of Transformers wrote for an image model"
    if not (folder / "config.json").is_file():
        raise bad_input(where, f"{folder} holds no config.json", expected)
    try:
        network, loading = AutoModelForImageClassification.from_pretrained(
            folder, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # of a configuration, a weights file, or a model of another kind
        raise bad_input(where, f"{folder} cannot be loaded: {first_line(error)}", expected) from error
    missing = sorted(name for name in loading["missing_keys"] if not name.startswith(HEAD))
    if missing:
        raise bad_input(where, f"{len(missing)} weights are missing, such as {missing[0]}", expected)
    config = network.config
    mean, std = _normalisation(folder)
    size = getattr(config, "image_size", None)
    names = tuple(str(name) for _, name in sorted(config.id2label.items()))
    sides = None if size is None else (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
    return InitialModel(where, None, config, network.state_dict(), names, sides, mean, std)


def _normalisation(folder: Path) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    try:
        found = json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8"))
        return tuple(map(float, found["image_mean"])), tuple(map(float, found["image_std"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None, None


def configuration(
    initial: InitialModel, *, channels: int, size: tuple[int, int], labels: Mapping[str, Any]
) -> PretrainedConfig:
    """Return the configuration of the model to train: the initial one's, with these classes and this size.

    Raise InputError if it takes images of another number of channels."""
    settings = initial.config.to_dict() | dict(labels)
    settings.pop("num_labels")
    if "image_size" in settings:
        settings["image_size"] = size[0] if size[0] == size[1] else size
    if settings.get("num_channels", channels) != channels:
        raise bad_input(
            initial.where,
            f"it takes images of {settings['num_channels']} channels",
            f"{channels}, as the images of the data have",
            "train a model for these images from the beginning",
        )
    return AutoConfig.for_model(settings.pop("model_type"), **settings)


def load(model: ImageClassifier, initial: InitialModel, classes: tuple[str, ...]) -> bool:
    """Load the weights into the model, and return whether its head stays new, because the classes are others.

    Raise InputError if they do not fit.
    """
    new_head = initial.classes != classes and not _unnamed(initial.classes, len(classes))
    weights = {name: value for name, value in initial.weights.items() if not (new_head and name.startswith(HEAD))}
    try:
        missing, unexpected = model.network.load_state_dict(weights, strict=False)
    except RuntimeError as error:
        _, _, reason = str(error).partition("\n")  # the first line names the class
        raise bad_input(
            initial.where,
            f"its weights do not fit: {first_line(RuntimeError(reason))}",
            "a model for images of this size",
            "leave image_size out, or start from another model",
        ) from None
    wrong = [*unexpected, *(name for name in missing if not (new_head and name.startswith(HEAD)))]
    if wrong:
        found = f"its weights do not fit: {len(wrong)} are missing or too many, such as {wrong[0]}"
        raise bad_input(initial.where, found, "a whole model")
    return new_head


def _unnamed(classes: tuple[str, ...], count: int) -> bool:
    """Return whether these are Transformers' default names for this number of classes."""
    return classes == tuple(f"LABEL_{number}" for number in range(count))
