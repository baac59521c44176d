"""Where tables come from: scikit-learn, or a folder of CSV or Parquet files. Batches of rows, which may be read
repeatedly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from allranks.errors import InputError, Problem
from allranks_steps.messages import first_line
from allranks_steps.tables.prepared_table import CLASSIFICATION, REGRESSION, open_files

LABEL = "label"
"""Column of the label in scikit-learn's tables."""


class Source(Protocol):
    """A table that is read in batches, so that it may be larger than the memory."""

    @property
    def schema(self) -> pa.Schema: ...

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows. The same call again yields the same."""


@dataclass(frozen=True)
class InMemory:
    """A table of scikit-learn, with its label in LABEL. task, classes: what the label is"""

    table: pa.Table
    task: str
    classes: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.table.combine_chunks().to_batches()


@dataclass(frozen=True)
class Files:
    """The files of a folder."""

    rows: pads.Dataset

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.rows.to_batches()
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(Problem("input folder", first_line(error))) from None


def from_folder(folder: Path | None) -> Files:
    if folder is None:
        expected = "a folder with CSV or Parquet files"
        raise InputError(Problem("input folder", "it is not given, and source is 'folder'", expected))
    return Files(open_files(folder, "input folder"))


def from_scikit_learn(name: str, rows: int, features: int, seed: int) -> InMemory:
    """Return one of scikit-learn's tables. rows, features, seed: of a generated one"""
    from sklearn import datasets

    if name == "make_classification":
        informative = max(2, features // 2)
        values, label = datasets.make_classification(
            rows, features, n_informative=informative, n_redundant=0, class_sep=0.8, flip_y=0.02, random_state=seed
        )
        return InMemory(_table(values.astype(np.float32), label, _numbered(features)), CLASSIFICATION, ("0", "1"))
    if name == "make_regression":
        values, label = datasets.make_friedman1(rows, max(features, 5), noise=1.0, random_state=seed)
        return InMemory(_table(values.astype(np.float32), label, _numbered(values.shape[1])), REGRESSION)
    bundled = getattr(datasets, f"load_{name}")()
    names = [str(name).replace(" ", "_") for name in bundled.feature_names]
    if name == "diabetes":
        return InMemory(_table(bundled.data, bundled.target, names), REGRESSION)
    classes = tuple(str(name) for name in bundled.target_names)
    return InMemory(_table(bundled.data, bundled.target, names), CLASSIFICATION, classes)


def _table(values: np.ndarray, label: np.ndarray, names: list[str]) -> pa.Table:
    columns = {name: values[:, index] for index, name in enumerate(names)}
    return pa.table(columns | {LABEL: label})


def _numbered(count: int) -> list[str]:
    return [f"feature_{index}" for index in range(count)]
