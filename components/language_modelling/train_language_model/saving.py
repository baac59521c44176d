"""The trained model in MLflow's format, as a text model that continues prompts."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from allranks_steps.text import language_model
from allranks_steps.text.gpt import Shape

CODE = Path(__file__).parent


def save(folder: Path, weights: Mapping[str, Any], shape: Shape, tokenizer: str, end: int) -> None:
    """Write the model: MLmodel, the required code, and the files of `language_model` in WITHIN."""
    # A progress bar for three local files is not useful.
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    import mlflow.pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    texts = Schema([ColSpec("string")])
    params = [
        ParamSpec("max_tokens", "long", 100),
        ParamSpec("temperature", "double", 0.8),
        ParamSpec("top_k", "long", 50),
        ParamSpec("seed", "long", 0),
    ]
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        # MLflow warns that there is no input example, and no type hints besides the signature.
        warnings.simplefilter("ignore", UserWarning)
        files = Path(temporary, "files", Path(language_model.WITHIN).name)
        language_model.write_config(files, shape, tokenizer, end)
        mlflow_model = Path(temporary, "model")
        mlflow.pyfunc.save_model(
            mlflow_model,
            python_model=str(CODE / "served_model.py"),
            code_paths=[str(CODE / name) for name in ("gpt.py", "language_model.py", "generation.py")],
            artifacts={files.name: str(files)},
            signature=ModelSignature(inputs=texts, outputs=texts, params=ParamSchema(params)),
            pip_requirements=[_pinned(name) for name in ("torch", "tokenizers", "safetensors")] + ["mlflow", "pandas"],
        )
        # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
        shutil.copytree(mlflow_model, folder, dirs_exist_ok=True)
    # Straight to the output: those of a large model would fill the temporary folder.
    language_model.write_weights(folder / language_model.WITHIN, weights, shape)


def _pinned(name: str) -> str:
    try:
        return f"{name}=={version(name).partition('+')[0]}"
    except PackageNotFoundError:  # tokenizers: the training does not need it
        return name
