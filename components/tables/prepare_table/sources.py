"""Sources of tables: scikit-learn, or a folder of CSV or Parquet files. The rows can be read repeatedly, in batches."""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from allranks_steps.messages import bad_input, first_line
from allranks_steps.tables.prepared_table import CLASSIFICATION, REGRESSION, open_files

LABEL = "label"
"""Column of the label in scikit-learn's tables."""


@dataclass(frozen=True)
class Source:
    """A table that is read in batches, so that it may be larger than the memory.

    label:   the column to predict
    classes: names of its classes, if the source has them
    """

    rows: pads.Dataset
    label: str
    task: str
    classes: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in the same order in each call. Raise InputError for a file that cannot be read."""
        try:
            yield from self.rows.to_batches()
        except (OSError, pa.ArrowInvalid) as error:
            raise bad_input("input folder", first_line(error)) from None


def open_source(args: Namespace) -> Source:
    """Return the source that the arguments choose. Raise InputError if the folder is missing or cannot be used."""
    if args.source != "folder":
        return _from_scikit_learn(args.source, args.row_count, args.feature_count, args.seed)
    if args.folder is None:
        expected = "a folder with CSV or Parquet files"
        raise bad_input("input folder", "it is not given, and source is 'folder'", expected)
    return Source(open_files(args.folder, "input folder"), args.label_column, args.task)


def _from_scikit_learn(name: str, rows: int, features: int, seed: int) -> Source:
    """Return one of scikit-learn's tables. rows, features, seed: of a generated one"""
    from sklearn import datasets

    if name == "make_classification":
        informative = max(2, features // 2)
        values, label = datasets.make_classification(
            rows, features, n_informative=informative, n_redundant=0, class_sep=0.8, flip_y=0.02, random_state=seed
        )
        return _source(values.astype(np.float32), label, _numbered(features), CLASSIFICATION, ("0", "1"))
    if name == "make_regression":
        values, label = datasets.make_friedman1(rows, max(features, 5), noise=1.0, random_state=seed)
        return _source(values.astype(np.float32), label, _numbered(values.shape[1]), REGRESSION)
    bundled = getattr(datasets, f"load_{name}")()
    names = [str(name).replace(" ", "_") for name in bundled.feature_names]
    if name == "diabetes":
        return _source(bundled.data, bundled.target, names, REGRESSION)
    classes = tuple(str(name) for name in bundled.target_names)
    return _source(bundled.data, bundled.target, names, CLASSIFICATION, classes)


def _source(
    values: np.ndarray, label: np.ndarray, names: list[str], task: str, classes: tuple[str, ...] = ()
) -> Source:
    columns = {name: values[:, index] for index, name in enumerate(names)}
    return Source(pads.dataset(pa.table(columns | {LABEL: label})), LABEL, task, classes)


def _numbered(count: int) -> list[str]:
    return [f"feature_{index}" for index in range(count)]
