"""The trained model in MLflow's format, and the space for it and the checkpoints."""

from argparse import Namespace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import keras
import numpy as np

from allranks.runtime.output_room import outputs_of_training, require_room
from allranks_steps.images.prepared_images import Description
from allranks_steps.models.mlmodel import new_model


def save(model: Any, description: Description, folder: Path, *, preset: str) -> None:
    """Write a Keras model in MLflow's TensorFlow flavor. Raise InputError if a disk is full."""
    import mlflow.tensorflow
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    signature = ModelSignature(
        inputs=Schema([TensorSpec(np.dtype("uint8"), (-1, *description.shape))]),
        outputs=Schema([TensorSpec(np.dtype("float32"), (-1, len(description.classes)))]),
    )
    with new_model(folder) as temporary:
        mlflow.tensorflow.save_model(
            model,
            temporary,
            signature=signature,
            pip_requirements=[f"tensorflow=={_tensorflow_version()}", f"keras=={keras.__version__}"],
            metadata={"classes": list(description.classes), "preset": preset},
        )


def check_room(args: Namespace, model: Any, optimizer: Any) -> None:
    """Raise InputError if the disks of the outputs, as this process sees them, have no room for them."""
    weights = _size(model.variables)
    checkpoint = weights + _size(optimizer.variables)
    require_room(outputs_of_training(args.model, weights, args.checkpoints, checkpoint, args.save_total_limit))


def _size(variables: Any) -> int:
    """Return the size of variables in bytes. variables: a method in Keras 2's optimizers"""
    found = variables() if callable(variables) else variables
    return sum(int(np.prod(variable.shape)) * _bytes(variable.dtype) for variable in found)


def _bytes(dtype: Any) -> int:
    return int(getattr(dtype, "size", 0)) or np.dtype(str(dtype)).itemsize


def _tensorflow_version() -> str:
    try:
        return version("tensorflow")
    except PackageNotFoundError:  # the build without CUDA has a name of its own
        return version("tensorflow-cpu")
