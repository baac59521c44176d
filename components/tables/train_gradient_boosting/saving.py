"""The trained model in MLflow's format, and its feature importance."""

from __future__ import annotations

import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lightgbm
import pyarrow as pa

from allranks_steps.tables.prepared_table import Description

EXAMPLE_ROWS = 5


def save(booster: lightgbm.Booster, rows: pa.Table, description: Description, folder: Path) -> None:
    """Write the model in MLflow's LightGBM flavor.

    It takes the features as numbers (a DataFrame of float64 columns, by name) and gives a probability for each class
    (of two classes that of the second), or a number.
    """
    import mlflow.lightgbm
    from mlflow.models import infer_signature

    # Floating point, since a whole number could not be missing.
    example = rows.slice(0, EXAMPLE_ROWS).to_pandas().astype("float64")
    with tempfile.TemporaryDirectory() as temporary:
        mlflow.lightgbm.save_model(
            booster,
            temporary,
            signature=infer_signature(example, booster.predict(example)),
            pip_requirements=[f"{name}=={version(name)}" for name in ("lightgbm", "numpy", "pandas", "scikit-learn")],
            metadata={"task": description.task, "classes": list(description.classes)},
        )
        # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
        shutil.copytree(temporary, folder, dirs_exist_ok=True)


def importance(booster: lightgbm.Booster) -> dict[str, Any]:
    """Return for each feature its total gain and its number of splits, in descending order of the gain."""
    gains = booster.feature_importance("gain", iteration=-1)
    splits = booster.feature_importance("split", iteration=-1)
    rows = zip(booster.feature_name(), gains.tolist(), splits.tolist(), strict=True)
    return {
        name: {"gain": gain, "splits": count} for name, gain, count in sorted(rows, key=lambda row: (-row[1], row[0]))
    }


def write_json(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
