"""The trained model in MLflow's format, its size, and its feature importance."""

from argparse import Namespace
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lightgbm
import pyarrow as pa

from allranks.runtime.output_room import outputs_of_training, require_room
from allranks.runtime.sockets import Ranks
from allranks_steps.models.mlmodel import new_model
from allranks_steps.tables.prepared_table import Description

BYTES_PER_LEAF = 115
"""Size of a leaf in LightGBM's text format, with the split above it."""

EXAMPLE_ROWS = 5


def save(booster: lightgbm.Booster, rows: pa.Table, description: Description, folder: Path) -> None:
    """Write the model in MLflow's LightGBM flavor. Raise InputError if a disk is full.

    It takes the features as numbers (a DataFrame of float64 columns, by name) and gives a probability for each class
    (of two classes that of the second), or a number.
    """
    import mlflow.lightgbm
    from mlflow.models import infer_signature

    # Floating point, since a whole number could not be missing.
    example = rows.slice(0, EXAMPLE_ROWS).to_pandas().astype("float64")
    with new_model(folder) as temporary:
        mlflow.lightgbm.save_model(
            booster,
            temporary,
            signature=infer_signature(example, booster.predict(example)),
            pip_requirements=[f"{name}=={version(name)}" for name in ("lightgbm", "numpy", "pandas", "scikit-learn")],
            metadata={"task": description.task, "classes": list(description.classes)},
        )


def check_room(args: Namespace, parameters: Mapping[str, Any], rows: int, ranks: Ranks) -> None:
    """Raise InputError if the disks of the outputs have no room for them. A collective.

    rows: training rows of all ranks, which limit the leaves of a tree
    """
    trees = args.num_iterations * int(parameters.get("num_class", 1))
    leaves = min(args.num_leaves, max(1, rows // max(1, args.min_data_in_leaf)))
    if args.max_depth > 0:
        leaves = min(leaves, 2**args.max_depth)
    model = trees * leaves * BYTES_PER_LEAF
    require_room(outputs_of_training(args.model, model, args.checkpoints, model, args.save_total_limit), ranks)


def importance(booster: lightgbm.Booster) -> dict[str, Any]:
    """Return for each feature its total gain and its number of splits, in descending order of the gain."""
    gains = booster.feature_importance("gain", iteration=-1)
    splits = booster.feature_importance("split", iteration=-1)
    rows = zip(booster.feature_name(), gains.tolist(), splits.tolist(), strict=True)
    return {
        name: {"gain": gain, "splits": count} for name, gain, count in sorted(rows, key=lambda row: (-row[1], row[0]))
    }
