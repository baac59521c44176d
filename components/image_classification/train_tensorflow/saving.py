"""The trained model in MLflow's format."""

from __future__ import annotations

import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import keras
import numpy as np

from allranks_steps.images.prepared_images import Description


def save(model: Any, description: Description, folder: Path, *, preset: str) -> None:
    """Write a Keras model in MLflow's TensorFlow flavor."""
    # A progress bar for local files is not useful.
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    import mlflow.tensorflow
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    signature = ModelSignature(
        inputs=Schema([TensorSpec(np.dtype("uint8"), (-1, *description.shape))]),
        outputs=Schema([TensorSpec(np.dtype("float32"), (-1, len(description.classes)))]),
    )
    with tempfile.TemporaryDirectory() as temporary:
        mlflow.tensorflow.save_model(
            model,
            temporary,
            signature=signature,
            pip_requirements=[f"tensorflow=={_tensorflow_version()}", f"keras=={keras.__version__}"],
            metadata={"classes": list(description.classes), "preset": preset},
        )
        # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
        shutil.copytree(temporary, folder, dirs_exist_ok=True)


def _tensorflow_version() -> str:
    try:
        return version("tensorflow")
    except PackageNotFoundError:  # the build without CUDA has a name of its own
        return version("tensorflow-cpu")
