"""Confusion matrices among a step's artifacts, in Azure ML's schema."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.runs.records import StepRecord

LARGEST_FILE = 1 << 20
LARGEST_MATRIX = 64
_FILES = 100
_NUMBERS = 30
"""Maximum number of classes for which cells have room for their number."""


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix: one row per true class, one column per predicted class."""

    step: StepRecord
    labels: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    @property
    def total(self) -> float:
        return sum(map(sum, self.rows))

    @property
    def right(self) -> float:
        return sum(row[index] for index, row in enumerate(self.rows))

    @property
    def numbered(self) -> bool:
        return len(self.labels) <= _NUMBERS

    def share(self, row: int, column: int) -> float:
        """Return the fraction of the true class `row` that was predicted as the class `column`."""
        total = sum(self.rows[row])
        return self.rows[row][column] / total if total else 0.0

    def recall(self, place: int) -> float | None:
        """Return the fraction of the class that was predicted correctly; None if the class does not occur."""
        total = sum(self.rows[place])
        return self.rows[place][place] / total if total else None

    def precision(self, place: int) -> float | None:
        """Return the fraction of the predictions of the class that are correct; None if there are none."""
        total = sum(row[place] for row in self.rows)
        return self.rows[place][place] / total if total else None

    def mistakes(self, limit: int = 3) -> list[tuple[str, str, float]]:
        """Return the most frequent mistakes: true class, predicted class, how often."""
        wrong = [
            (self.labels[row], self.labels[column], value)
            for row, values in enumerate(self.rows)
            for column, value in enumerate(values)
            if row != column and value
        ]
        return sorted(wrong, key=lambda mistake: -mistake[2])[:limit]


def confusions(step: StepRecord) -> list[Confusion]:
    """Return the matrices among the step's artifacts. Files that are missing, incomplete or too large are ignored."""
    names = [name for name in step.artifacts if name.endswith(".json")][:_FILES]
    matrices = (_read(step, Path(step.folder) / name) for name in names)
    return [confusion for confusion in matrices if confusion is not None]


def _read(step: StepRecord, path: Path) -> Confusion | None:
    try:
        # Reading a pipe might never end, and a file may grow before it is read.
        if not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE + 1)
        return _parse(step, json.loads(text)) if len(text) <= LARGEST_FILE else None
    except (OSError, ValueError, RecursionError, OverflowError):
        return None


def _parse(step: StepRecord, content: Any) -> Confusion | None:
    if not isinstance(content, dict) or content.get("schema_type") != "confusion_matrix":
        return None
    data = content.get("data")
    labels, matrix = (data.get("class_labels"), data.get("matrix")) if isinstance(data, dict) else (None, None)
    if not isinstance(labels, list) or not isinstance(matrix, list) or not 0 < len(labels) <= LARGEST_MATRIX:
        return None
    if len(matrix) != len(labels) or not all(_is_row(row, len(labels)) for row in matrix):
        return None
    return Confusion(step, tuple(map(str, labels)), tuple(tuple(map(float, row)) for row in matrix))


def _is_row(row: Any, length: int) -> bool:
    return isinstance(row, list) and len(row) == length and all(map(_is_count, row))


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
