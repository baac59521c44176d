"""Language models in MLflow's format: their files, and the code that serves them without this project."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from allranks_steps.text.model_folder import WITHIN

if TYPE_CHECKING:  # An import is what copies a module beside a component's code.
    from allranks_steps.text import served_language_model  # noqa: F401

GENERATION = {
    "max_new_tokens": ("long", 128),
    "temperature": ("double", 0.0),
    "top_k": ("long", 50),
    "top_p": ("double", 1.0),
    "seed": ("long", 0),
    "chat": ("boolean", True),
}
"""MLflow's type and the default of each parameter of a language model: temperature 0 takes the most likely token;
top_k 0 samples from all tokens; chat: whether a prompt is a user's message, not a text to continue."""

LANGUAGE_MODEL = Path(__file__).with_name("served_language_model.py")
"""The Python model with the parameters of GENERATION."""


def write_mlflow_model(
    model: Path, served_by: Path, packages: Iterable[str], params: Mapping[str, tuple[str, object]] | None = None
) -> None:
    """Turn a folder, with the model's files in WITHIN, into an MLflow model.

    served_by: the file with the Python model
    packages:  required for serving
    params:    MLflow's type and the default of each parameter of a model that maps texts to texts; None: no signature
    """
    # A progress bar for a few local files is not useful.
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    import mlflow.pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    texts = Schema([ColSpec("string")])
    specs = [ParamSpec(name, kind, default) for name, (kind, default) in (params or {}).items()]
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        # MLflow warns that there is no input example, and no type hints besides the signature.
        warnings.simplefilter("ignore", UserWarning)
        # MLflow copies artifacts. It gets the smallest file, and the others are in place already.
        stub, skeleton = Path(temporary, Path(WITHIN).name), Path(temporary, "model")
        stub.mkdir()
        shutil.copy(model / WITHIN / "config.json", stub)
        mlflow.pyfunc.save_model(
            skeleton,
            python_model=str(served_by),
            artifacts={stub.name: str(stub)},
            signature=None if params is None else ModelSignature(texts, texts, ParamSchema(specs)),
            pip_requirements=[*(f"{name}=={version(name).partition('+')[0]}" for name in packages), "mlflow", "pandas"],
        )
        # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
        shutil.copytree(skeleton, model, dirs_exist_ok=True)
