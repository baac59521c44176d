"""A rank's rows for training and validation."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import NDArray

from allranks.runtime.sockets import Ranks
from allranks_steps.messages import bad_input
from allranks_steps.tables.prepared_table import (
    CLASSIFICATION,
    REGRESSION,
    Description,
    column_names,
    open_files,
    read_description,
    read_rows,
)

LEAST_ROWS = 2
"""Minimum number of training rows of a rank."""


@dataclass(frozen=True)
class Rows:
    """Rows of a table. features: a column each; label, weight: (rows,), weight None if all weigh the same"""

    features: pa.Table
    label: NDArray[np.floating]
    weight: NDArray[np.floating] | None

    def __len__(self) -> int:
        return len(self.label)


def describe(folder: Path, args: argparse.Namespace) -> Description:
    """Return the description in table.json with the changes in the arguments.

    Raise InputError if both are missing, or columns are not numeric.
    """
    description = read_description(folder)
    schema = open_files(folder / "train", "input data, train").schema
    if description is None:
        description = _described_by(args, schema.names)
    changed = {"label": args.label_column, "weight": args.weight_column}
    description = replace(description, **{name: value for name, value in changed.items() if value})
    if args.categorical_columns:
        description = replace(
            description,
            categories={**dict.fromkeys(column_names(args.categorical_columns), ()), **description.categories},
        )
    columns = {
        "input label_column": (description.label,),
        "input categorical_columns": tuple(description.categories),
        "input weight_column": (description.weight,) if description.weight else (),
        "input data": description.features,
    }
    for where, names in columns.items():
        for name in names:
            _check_column(where, name, schema)
    return description


def read(folder: Path, split: str, description: Description, rank: int, world_size: int) -> Rows:
    """Return a rank's share of a split. Raise InputError if it cannot be read."""
    table = read_rows(folder, split, description, rank, world_size)
    label = table[description.label].to_numpy().astype(np.float64)
    if np.isnan(label).any():
        found = f"{int(np.isnan(label).sum())} rows of {split} without a label"
        raise bad_input("input label_column", found, "a label in every row", "leave these rows out")
    weight = table[description.weight].to_numpy().astype(np.float64) if description.weight else None
    return Rows(table.select(list(description.features)), label, weight)


def with_classes(description: Description, rows: Rows, validation: Rows, ranks: Ranks) -> Description:
    """Return the description with the classes of all ranks' training labels, where it has none.

    Raise InputError if a label of the rows is not the index of a class. A collective.
    """
    if description.task == REGRESSION:
        return description
    labels = {"train": rows.label, "validation": validation.label}
    highest = ranks.all_gather([[_whole(label), int(label.max(initial=0))] for label in labels.values()])
    count = max(train[1] for train, _ in highest) + 1
    expected = len(description.classes) or count
    for number, split in enumerate(labels):
        most = max(splits[number][1] for splits in highest)
        if most >= expected or not all(splits[number][0] for splits in highest):
            found = f"labels up to {most}" if most >= expected else "labels that are not whole numbers from 0"
            fix = "prepare the table with prepare_table, or train a regression"
            raise bad_input("input label_column", f"{found} in {split}", f"the index of one of {expected} classes", fix)
    if expected < 2:
        raise bad_input("input label_column", "the same label in every row", "at least 2 classes")
    return replace(description, classes=description.classes or tuple(map(str, range(count))))


def check_counts(rows: Rows, validation: Rows, ranks: Ranks) -> tuple[int, int]:
    """Return the number of training rows of all ranks, and of the rank with the fewest. Raise InputError if a rank has
    too few. A collective."""
    counts = ranks.all_gather([len(rows), len(validation)])
    if min(train for train, _ in counts) < LEAST_ROWS or not all(count for _, count in counts):
        found = f"{sum(n for n, _ in counts)} training and {sum(n for _, n in counts)} validation rows"
        expected = f"at least {LEAST_ROWS} and 1 for each of the {ranks.world_size} ranks"
        raise bad_input("input data", found, expected, "give more rows, or take fewer instances")
    return int(sum(train for train, _ in counts)), int(min(train for train, _ in counts))


def _whole(labels: NDArray[np.floating]) -> bool:
    return bool(np.all(np.isfinite(labels)) and np.all(labels == np.floor(labels)) and np.all(labels >= 0))


def _described_by(args: argparse.Namespace, names: list[str]) -> Description:
    if args.objective == "auto" or not args.label_column:
        parameter = "objective" if args.label_column else "label_column"
        fix = f"give {parameter}, or the output `table` of prepare_table"
        raise bad_input("input data", "it holds no table.json", f"{parameter} says what to train", fix)
    other = {args.label_column, args.weight_column, *column_names(args.ignored_columns)}
    task = CLASSIFICATION if args.objective in ("binary", "multiclass") else REGRESSION
    features = tuple(name for name in names if name not in other)
    return Description(source=str(args.data), task=task, label=args.label_column, features=features)


def _check_column(where: str, name: str, schema: pa.Schema) -> None:
    if name not in schema.names:
        expected = f"one of {', '.join(schema.names[:20])}"
        raise bad_input(where, f"there is no column {name!r}", expected)
    kind = schema.field(name).type
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        fix = "prepare the table with prepare_table, which writes texts as numbers, or name it in ignored_columns"
        raise bad_input(where, f"column {name!r} is of type {kind}", "a column of numbers", fix)
