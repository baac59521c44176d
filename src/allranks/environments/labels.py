"""The labels that an environment is registered with: version, description and tags, from its Dockerfile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from allranks.environments.dockerfile import Dockerfile

VERSION = "ENVIRONMENT_VERSION"
_SUFFIX = "_VERSION"
_SPELLED = {
    "accelerate": "Accelerate",
    "cuda": "CUDA",
    "datasets": "Datasets",
    "deepspeed": "DeepSpeed",
    "doca": "DOCA",
    "horovod": "Horovod",
    "lightning": "Lightning",
    "mlflow-skinny": "MLflow",
    "nccl": "NCCL",
    "numpy": "NumPy",
    "ofed": "OFED",
    "peft": "PEFT",
    "ray": "Ray",
    "tensorflow": "TensorFlow",
    "transformers": "Transformers",
    "trl": "TRL",
}


@dataclass(frozen=True)
class Labels:
    version: str
    description: str
    tags: Mapping[str, str]


def labels_of(dockerfile: Dockerfile) -> Labels:
    """Return the labels of a Dockerfile.

    version:     the table's ENVIRONMENT_VERSION
    description: the Dockerfile's first line, and the versions inside
    tags:        the base image, and each NAME_VERSION as name: version
    """
    versions = {
        key_of(row.name): row.value
        for row in dockerfile.table
        if row.name.endswith(_SUFFIX) and row.name not in (VERSION, "BASE_IMAGE")
    }
    title = dockerfile.lines[0].removeprefix("#").strip() if dockerfile.lines else ""
    inside = ", ".join(f"{_SPELLED.get(key, key)} {value}" for key, value in versions.items())
    return Labels(
        version=dockerfile.value(VERSION) or "",
        description=f"{title} In it: {inside}.",
        tags={"base-image": dockerfile.value("BASE_IMAGE") or "", **versions},
    )


def key_of(row: str) -> str:
    """Return the tag of a row of the table: mlflow-skinny for MLFLOW_SKINNY_VERSION."""
    return row.removesuffix(_SUFFIX).lower().replace("_", "-")
