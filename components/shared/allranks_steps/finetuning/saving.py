"""A fine-tuned model in MLflow's format: the files of Hugging Face, and code that serves them without this project."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from allranks_steps.finetuning.base_model import WITHIN


def weights_folder(model: Path) -> Path:
    """Create and return the folder for the weights within an MLflow model. They are written there once, in place."""
    folder = model / WITHIN
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_mlflow_model(model: Path, served_by: Path, signature: Any, packages: Sequence[str]) -> None:
    """Make a folder whose weights are in place an MLflow model.

    served_by: the file with the Python model
    signature: MLflow's, or None
    packages:  what serving needs
    """
    # A progress bar for a few local files is not useful.
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    import mlflow.pyfunc

    name = Path(WITHIN).name
    (model / WITHIN / "training_args.bin").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        # MLflow warns that there is no input example, and no type hints besides the signature.
        warnings.simplefilter("ignore", UserWarning)
        # MLflow copies artifacts. It gets the smallest file, and the others are in place already.
        stub, skeleton = Path(temporary, name), Path(temporary, "model")
        stub.mkdir()
        shutil.copy(model / WITHIN / "config.json", stub)
        mlflow.pyfunc.save_model(
            skeleton,
            python_model=str(served_by),
            artifacts={name: str(stub)},
            signature=signature,
            pip_requirements=[f"{package}=={version(package).partition('+')[0]}" for package in packages]
            + ["mlflow", "pandas"],
        )
        # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
        shutil.copytree(skeleton, model, dirs_exist_ok=True)
