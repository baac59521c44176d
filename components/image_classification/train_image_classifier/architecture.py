"""The model that a training builds: a preset's, or that of a model to start from."""

import argparse

import initial_model
from initial_model import InitialModel

from allranks_steps.images.classifier import Architecture
from allranks_steps.images.image_data.images import ImageData
from allranks_steps.images.presets import configuration, labels, network_size, require_stochastic_depth
from allranks_steps.messages import bad_input
from allranks_steps.models.mlmodel import is_placeholder


def start_from(args: argparse.Namespace) -> InitialModel | None:
    """Return the model to start from, or None. Raise InputError if it cannot be read, or is not the preset's."""
    if args.initial_model and args.pretrained_model:
        problem = "given beside pretrained_model"
        raise bad_input("input initial_model", problem, "one model to start from", "leave one of them out")
    if args.pretrained_model:
        return initial_model.read_transformers(args.pretrained_model)
    if not args.initial_model or is_placeholder(args.initial_model):
        return None
    model = initial_model.read_mlflow(args.initial_model)
    if model.preset not in (None, args.preset):
        raise bad_input(
            model.where,
            f"a {model.preset}, and the input model is {args.preset}",
            "the same model",
            f"set model to {model.preset}, or leave initial_model out",
        )
    return model


def design(args: argparse.Namespace, data: ImageData, initial: InitialModel | None) -> Architecture:
    """Return the architecture of the model. Raise InputError if it does not fit the images."""
    mean, std = data.mean, data.std
    if initial is None:
        size = network_size(args.preset, args.image_size, data.size)
        config = configuration(args.preset, size, data.channels, data.classes, args.drop_path_rate)
    else:
        own = (args.image_size, args.image_size) if args.image_size else None
        size = own or initial.size or data.size or (224, 224)
        config = initial_model.configuration(initial, channels=data.channels, size=size, labels=labels(data.classes))
        if args.drop_path_rate is not None:
            require_stochastic_depth(args.drop_path_rate, config)
            config.drop_path_rate = args.drop_path_rate
        mean, std = initial.mean or mean, initial.std or std
    return Architecture(config, size, data.size or size, mean, std)
