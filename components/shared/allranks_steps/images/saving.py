"""The trained model in MLflow's format: a graph with its weights, which loads without this code."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import torch

from allranks.runtime.metrics.tracking import installed_requirements, mlflow_pytorch
from allranks_steps.images.classifier import Architecture, ImageClassifier
from allranks_steps.models.mlmodel import new_model


def save(
    model: ImageClassifier,
    folder: Path,
    architecture: Architecture,
    *,
    channels: int,
    classes: tuple[str, ...],
    preset: str | None,
) -> None:
    """Write the model. A training can start from it. Raise InputError if a disk is full.

    architecture: of the model, which is written to the metadata
    preset:       the architecture's name in PRESETS; None if it has none
    """
    flavor = mlflow_pytorch()
    from mlflow.models import infer_signature

    model = model.cpu().eval()
    example = np.zeros((2, channels, *architecture.image_size), dtype=np.uint8)
    with torch.no_grad():
        signature = infer_signature(example, model(torch.from_numpy(example)).numpy())
    config = json.loads(architecture.config.to_json_string())
    metadata = {
        "classes": list(classes),
        "model": preset,
        "preprocessing": {
            name: list(getattr(architecture, name)) for name in ("image_size", "network_size", "mean", "std")
        },
        "config": {name: value for name, value in config.items() if name not in ("id2label", "label2id")},
        "code": code_digest(),
    }
    with new_model(folder) as temporary, installed_requirements():
        flavor.save_model(
            model,
            temporary,
            signature=signature,
            input_example=example,
            serialization_format="pt2",
            pip_requirements=[f"torch=={torch.__version__.partition('+')[0]}", f"numpy=={np.__version__}"],
            metadata=metadata,
        )


def code_digest() -> str:
    """Return a digest of the training's Python code: the program's folder and this package."""
    digest = hashlib.sha256()
    for folder in (Path(sys.argv[0]).resolve().parent, Path(__file__).parents[1]):
        for file in sorted(folder.rglob("*.py")):
            digest.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]
