"""The folder that `prepare_table` writes and that training and evaluation read.

    table.json                                 description of the columns: `Description`
    train/part-00000.parquet, ...              the rows of each split, in Apache Parquet
    validation/..., test/...

Every feature is a number: a column of texts is written as the index of its category, and table.json has the texts. A
missing value is null. The label of a classification is the index of its class.

Other training data need no table.json. Parameters of the component describe a folder with the sub-folders train,
validation and test, in Parquet or CSV.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from allranks_steps.json_files import write_json
from allranks_steps.messages import bad_input, first_line

SPLITS = ("train", "validation", "test")
DESCRIPTION = "table.json"
CLASSIFICATION, REGRESSION = "classification", "regression"


@dataclass(frozen=True)
class Description:
    """The content of `table.json`.

    task:       classification or regression
    label:      column of the label
    weight:     column of the rows' weights; "" for none
    features:   the other columns, in the order of the model's inputs
    categories: texts of each categorical feature, by number; empty if the feature was numeric
    classes:    names of the classes, in the order of their indices; empty for a regression
    counts:     rows in each split; empty if unknown
    """

    source: str
    task: str
    label: str
    features: tuple[str, ...]
    weight: str = ""
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


def write_description(folder: Path, description: Description) -> None:
    write_json(folder / DESCRIPTION, asdict(description))


def read_description(folder: Path) -> Description | None:
    """Read `table.json` in the input `data`; None if there is none. Raise InputError if it is damaged."""
    file = folder / DESCRIPTION
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return Description(
            source=content["source"],
            task=content["task"],
            label=content["label"],
            features=tuple(content["features"]),
            weight=content["weight"],
            categories={name: tuple(texts) for name, texts in content["categories"].items()},
            classes=tuple(content["classes"]),
            counts=dict(content["counts"]),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        found = f"{file} is damaged: {error!r}"
        raise bad_input("input data", found, fix="run prepare_table again") from None


def column_names(text: str | None) -> tuple[str, ...]:
    """Return the names in an input that lists columns, separated by commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def open_files(folder: Path, where: str = "input data") -> pads.Dataset:
    """Return the rows of the Parquet or CSV files in a folder. Raise InputError if there are none, or of both kinds.

    where: the input, for the message
    """
    kinds = {
        kind: sorted(str(file) for ending in endings for file in folder.rglob(f"*{ending}"))
        for kind, endings in {"parquet": (".parquet",), "csv": (".csv", ".csv.gz")}.items()
    }
    found = {kind: files for kind, files in kinds.items() if files}
    if len(found) != 1:
        what = "no file that ends with .parquet or .csv" if not found else "Parquet and CSV files"
        raise bad_input(where, f"{folder} holds {what}", "a folder with files of one kind")
    ((kind, files),) = found.items()
    try:
        return pads.dataset(files, format=kind)
    except (OSError, pa.ArrowInvalid) as error:
        raise bad_input(where, f"{folder}: {first_line(error)}") from None


def read_rows(folder: Path, split: str, description: Description, rank: int, world_size: int) -> pa.Table:
    """Return this rank's share of the rows of a split, with the columns of the description.

    Raise InputError if a column is missing or a file cannot be read.
    """
    columns = [*description.features, description.label, *([description.weight] if description.weight else [])]
    where = f"input data, {split}"
    return read_share(open_files(folder / split, where), columns, rank, world_size, where)


def read_share(rows: pads.Dataset, columns: list[str], rank: int, world_size: int, where: str) -> pa.Table:
    """Return this rank's share of the rows. The rows are consecutive, and the shares differ by at most one row.

    where: the input, for the message

    Of Parquet, only the row groups with these rows are read; of CSV, the files with these rows. Raise InputError if a
    column is missing or a file cannot be read.
    """
    missing = [name for name in columns if name not in rows.schema.names]
    if missing:
        expected = f"one of {', '.join(rows.schema.names[:20])}"
        raise bad_input(where, f"there is no column {missing[0]!r}", expected)
    try:
        pieces = list(_pieces(rows))
        total = sum(count for _, count in pieces)
        begin, end = rank * total // world_size, (rank + 1) * total // world_size
        tables, start = [], 0
        for piece, count in pieces:
            low, high = max(begin - start, 0), min(end - start, count)
            if low < high:
                table = piece.to_table(schema=rows.schema, columns=columns)
                tables.append(table.slice(low, high - low))
            start += count
    except (OSError, pa.ArrowInvalid) as error:
        raise bad_input(where, first_line(error)) from None
    return pa.concat_tables(tables) if tables else rows.schema.empty_table().select(columns)


def _pieces(rows: pads.Dataset) -> Iterator[tuple[pads.Fragment, int]]:
    """Yield the parts of the table that can be read separately, with their numbers of rows."""
    for fragment in rows.get_fragments():
        if isinstance(fragment, pads.ParquetFileFragment):
            # A fragment of one row group counts the rows of its whole file.
            yield from ((group, group.row_groups[0].num_rows) for group in fragment.split_by_row_group())
        else:
            yield fragment, fragment.count_rows()
