"""The trained model in MLflow's format, as a text model that continues prompts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allranks_steps.text.gpt import Shape
from allranks_steps.text.language_model import WITHIN, write_config, write_weights
from allranks_steps.text.mlflow_model import write_mlflow_model

PARAMS = {
    "max_tokens": ("long", 100),
    "temperature": ("double", 0.8),
    "top_k": ("long", 50),
    "seed": ("long", 0),
}
CODE = ("__init__.py", "json_files.py", *(f"text/{name}.py" for name in ("gpt", "language_model", "generation")))


def save(folder: Path, weights: Mapping[str, Any], shape: Shape, tokenizer: str, end: int) -> None:
    """Write the model: MLmodel, the required code, and the files of `language_model` in WITHIN."""
    write_config(folder / WITHIN, shape, tokenizer, end)
    served_by = Path(__file__).with_name("served_model.py")
    write_mlflow_model(folder, WITHIN, served_by, ("torch", "tokenizers", "safetensors"), PARAMS, CODE)
    write_weights(folder / WITHIN, weights, shape)
