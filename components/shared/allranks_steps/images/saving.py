"""The trained model in MLflow's format: a graph with its weights, which loads without this code."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PretrainedConfig

from allranks.runtime.mlflow_pytorch import installed_requirements, mlflow_pytorch
from allranks.runtime.output_room import full_output_refused
from allranks_steps.images.classifier import ImageClassifier


def save(
    model: ImageClassifier,
    folder: Path,
    *,
    config: PretrainedConfig,
    pixels: tuple[int, int, int],
    about: dict[str, Any],
) -> None:
    """Write the model. Raise InputError if a disk is full.

    config: of its network, from which a training that starts from this model builds it again
    pixels: channels, height and width of the images that it takes
    about:  further metadata
    """
    flavor = mlflow_pytorch()
    from mlflow.models import infer_signature

    model = model.cpu().eval()
    example = np.zeros((2, *pixels), dtype=np.uint8)
    with torch.no_grad():
        signature = infer_signature(example, model(torch.from_numpy(example)).numpy())
    settings = json.loads(config.to_json_string())
    # The classes are in the metadata already.
    settings = {name: value for name, value in settings.items() if name not in ("id2label", "label2id")}
    metadata = about | {"config": settings, "code": code_digest()}
    with tempfile.TemporaryDirectory() as temporary:
        with full_output_refused("TMPDIR", Path(temporary)), installed_requirements():
            flavor.save_model(
                model,
                temporary,
                signature=signature,
                input_example=example,
                serialization_format="pt2",
                pip_requirements=[f"torch=={torch.__version__.partition('+')[0]}", f"numpy=={np.__version__}"],
                metadata=metadata,
            )
        with full_output_refused("output model", folder):
            # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
            shutil.copytree(temporary, folder, dirs_exist_ok=True)


def code_digest() -> str:
    """Return a digest of the training's Python code: its own files and the included ones."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]
