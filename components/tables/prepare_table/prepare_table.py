"""Divide a table into training, validation and test rows, with every column as numbers."""

import os
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sources import Source, open_source

from allranks.runtime import arguments
from allranks_steps.messages import bad_input
from allranks_steps.tables.prepared_table import (
    CLASSIFICATION,
    DESCRIPTION,
    REGRESSION,
    SPLITS,
    Description,
    column_names,
    write_description,
)

MAX_CATEGORIES = 100_000
"""Maximum number of distinct texts in a column. A column with more, such as a unique name, is not categorical."""

ROWS_PER_GROUP = 65_536
"""Rows of a row group, which a rank reads at once."""


@dataclass(frozen=True)
class Columns:
    """The columns of the output, and the values that their numbers stand for.

    categories: values of each categorical feature; empty if they are numbers
    classes:    values of the label; empty for a regression
    """

    label: str
    weight: str
    features: tuple[str, ...]
    categories: Mapping[str, pa.Array]
    classes: pa.Array


def prepare(args: Namespace) -> Description:
    """Read the source twice, for its categories and to write its splits. Return the description.

    Raise InputError, and write nothing, if the table cannot be used.
    """
    source, output = open_source(args), args.table
    columns = _columns(source, args)
    output.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=output))
    try:
        counts = _write_splits(source, columns, args, partial)
        empty = [split for split in SPLITS if not counts[split]]
        if empty:
            fix = "give more rows, or larger fractions"
            raise bad_input("input source", f"no row is in the {empty[0]} split", "at least one", fix)
        description = Description(
            source=args.source,
            task=source.task,
            label=columns.label,
            weight=columns.weight,
            features=columns.features,
            categories={name: tuple(map(str, values.to_pylist())) for name, values in columns.categories.items()},
            classes=source.classes or tuple(map(str, columns.classes.to_pylist())),
            counts=counts,
        )
        write_description(partial, description)
        for name in (*SPLITS, DESCRIPTION):
            if (output / name).is_dir():
                shutil.rmtree(output / name)
            os.replace(partial / name, output / name)
    finally:
        shutil.rmtree(partial)
    return description


def _columns(source: Source, args: Namespace) -> Columns:
    label, weight, task = source.label, args.weight_column or "", source.task
    categorical = column_names(args.categorical_columns)
    names = source.schema.names
    chosen = {"label_column": (label,), "weight_column": (weight,), "categorical_columns": categorical}
    for parameter, columns in chosen.items():
        for name in columns:
            if name and name not in names:
                expected = f"one of {', '.join(names[:20])}"
                raise bad_input(f"input {parameter}", f"there is no column {name!r}", expected)
    features = tuple(name for name in names if name not in (label, weight, *column_names(args.ignored_columns)))
    if not features:
        raise bad_input("input ignored_columns", "no column is left as a feature", fix="ignore fewer columns")
    for name in features:
        kind = source.schema.field(name).type
        if not (_is_text(kind) or _is_number(kind)):
            fix = "convert it, or name it in ignored_columns"
            raise bad_input(f"column {name!r}", f"type {kind}", "numbers or texts", fix)
    texts = [name for name in features if _is_text(source.schema.field(name).type)]
    distinct = _distinct(source, [*texts, *([label] if task == CLASSIFICATION else [])])
    categories = {name: distinct.get(name, pa.array([], pa.string())) for name in (*texts, *categorical)}
    classes = distinct.get(label, pa.array([], pa.string()))
    if task == CLASSIFICATION and len(classes) < 2:
        values = f"{label!r} has {len(classes)} distinct value"
        raise bad_input("input label_column", values, "at least 2 for a classification")
    if task == REGRESSION and not _is_number(source.schema.field(label).type):
        fix = "set task to classification"
        raise bad_input("input label_column", f"{label!r} has texts", "numbers for a regression", fix)
    return Columns(label, weight, features, categories, classes)


def _distinct(source: Source, names: list[str]) -> dict[str, pa.Array]:
    """Return the sorted distinct values of columns."""
    found: dict[str, pa.Array] = {}
    if not names:
        return found
    for batch in source.batches():
        for name in names:
            values = pc.drop_null(pc.unique(_plain(batch.column(name))))
            found[name] = pc.unique(pa.concat_arrays([found[name], values])) if name in found else values
            if len(found[name]) > MAX_CATEGORIES:
                count = f"more than {MAX_CATEGORIES} distinct values"
                raise bad_input(f"column {name!r}", count, fix="name it in ignored_columns")
    return {name: values.take(pc.sort_indices(values)) for name, values in found.items()}


def _write_splits(source: Source, columns: Columns, args: Namespace, folder: Path) -> dict[str, int]:
    """Write each row to a random split, and return the number of rows of each split. Rows without a label are
    skipped."""
    schema = _schema(source.schema, columns)
    generator = np.random.default_rng(args.seed)
    bounds = np.cumsum([1 - args.validation_fraction - args.test_fraction, args.validation_fraction])
    counts = dict.fromkeys(SPLITS, 0)
    writers = {}
    try:
        for split in SPLITS:
            (folder / split).mkdir()
            writers[split] = pq.ParquetWriter(folder / split / "part-00000.parquet", schema)
        for batch in source.batches():
            table = _as_numbers(pa.Table.from_batches([batch]), columns, schema)
            draws = np.digitize(generator.random(len(table)), bounds)
            for number, split in enumerate(SPLITS):
                # In another order, since rows are often sorted and ranks get consecutive ones.
                chosen = generator.permutation(np.flatnonzero(draws == number))
                writers[split].write_table(table.take(pa.array(chosen)), row_group_size=ROWS_PER_GROUP)
                counts[split] += len(chosen)
    finally:
        for writer in writers.values():
            writer.close()
    return counts


def _as_numbers(table: pa.Table, columns: Columns, schema: pa.Schema) -> pa.Table:
    table = table.filter(pc.is_valid(table[columns.label]))
    arrays = []
    for column in schema:
        values = _plain(table[column.name])
        known = columns.classes if column.name == columns.label else columns.categories.get(column.name)
        if known is not None and len(known):
            values = pc.index_in(values, known)
        arrays.append(values.cast(column.type))
    return pa.table(arrays, schema=schema)


def _schema(source: pa.Schema, columns: Columns) -> pa.Schema:
    fields = []
    for name in columns.features:
        kind = source.field(name).type
        if name in columns.categories:
            kind = pa.int32()
        elif pa.types.is_boolean(kind):
            kind = pa.int8()
        elif pa.types.is_decimal(kind):
            kind = pa.float64()
        fields.append(pa.field(name, kind))
    if columns.weight:
        fields.append(pa.field(columns.weight, pa.float64()))
    return pa.schema([*fields, pa.field(columns.label, pa.int32() if len(columns.classes) else pa.float64())])


def _plain(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return values without a dictionary or chunks."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in numeric)


def main() -> None:
    description = prepare(arguments())
    counts = ", ".join(f"{count} for {split}" for split, count in description.counts.items())
    print(f"{description.task}, {len(description.features)} features, rows: {counts}")


if __name__ == "__main__":
    main()
