"""The trained model in MLflow's format, as a text model that continues prompts."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import language_model
from gpt import Shape

CODE = Path(__file__).parent


def save(folder: Path, weights: Mapping[str, Any], shape: Shape, tokenizer: str, end: int) -> None:
    """Write the model: MLmodel, the code that it needs, and the files of `language_model` below WITHIN."""
    # A bar for three files on this disk says nothing.
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
        # That there is no example, and no type hints beside the signature.
        warnings.simplefilter("ignore", UserWarning)
        files = Path(temporary, "files", Path(language_model.WITHIN).name)
        language_model.write(files, weights, shape, tokenizer, end)
        made = Path(temporary, "model")
        mlflow.pyfunc.save_model(
            made,
            python_model=str(CODE / "served_model.py"),
            code_paths=[str(CODE / name) for name in ("gpt.py", "language_model.py", "generation.py")],
            artifacts={files.name: str(files)},
            signature=ModelSignature(inputs=texts, outputs=texts, params=ParamSchema(params)),
            pip_requirements=[f"{name}=={version(name).partition('+')[0]}" for name in ("torch", "tokenizers")]
            + ["mlflow", "pandas"],
        )
        # The output may be there already: the platform makes it, and an earlier attempt may have written to it.
        shutil.copytree(made, folder, dirs_exist_ok=True)
