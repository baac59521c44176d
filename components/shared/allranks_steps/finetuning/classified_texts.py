"""Labelled texts, or pairs of them, as tokens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Dataset

from allranks.errors import InputError, Problem
from allranks_steps.finetuning import records
from allranks_steps.messages import bad_input


@dataclass(frozen=True)
class Columns:
    """The columns of text, of the second text of a pair ("" for single texts), and of the label."""

    text: str
    pair: str
    label: str


def check(part: Dataset, columns: Columns, parameter: str) -> None:
    """Raise InputError if a column is missing. parameter: name of the input with the data."""
    given = {"text_column": columns.text, "text_pair_column": columns.pair, "label_column": columns.label}
    problems = [
        Problem(
            where=f"input {name}",
            found=f"{column!r}, which {parameter} does not have",
            expected=f"one of {', '.join(part.column_names)}",
            fix="name the column",
        )
        for name, column in given.items()
        if column not in part.column_names and (column or name != "text_pair_column")
    ]
    if problems:
        raise InputError.of(problems)


def label_names(part: Dataset, columns: Columns) -> list[str]:
    """Return the sorted labels. Raise InputError if there are fewer than two."""
    values = set(part[columns.label]) - {None}
    is_number = all(isinstance(value, (int, float)) for value in values)
    names = [str(value) for value in sorted(values, key=None if is_number else str)]
    if len(names) < 2:
        found = f"{len(names)} different labels in {columns.label}"
        fix = "give more data, or set problem_type to regression"
        raise bad_input("input label_column", found, "at least 2 to classify", fix)
    return names


def tokenize(
    part: Dataset, columns: Columns, tokenizer: Any, max_length: int, names: Sequence[str] | None, parameter: str
) -> Dataset:
    """Return the input_ids and the label of each record: the index of its name, or a float if names is None.

    parameter: name of the input with the data

    Raise InputError for a missing column, a record without text or label, or a label that is not among the names.
    """
    check(part, columns, parameter)
    numbers = None if names is None else {name: number for number, name in enumerate(names)}

    def convert(record: dict[str, Any], number: int) -> dict[str, Any]:
        where = f"input {parameter}, record {number}"
        texts = [record[column] for column in (columns.text, columns.pair) if column]
        if not all(isinstance(text, str) for text in texts):
            raise bad_input(where, repr(texts)[:80], "a text in each column", "correct the record")
        ids = tokenizer(*texts, truncation=True, max_length=max_length)["input_ids"]
        return {"input_ids": ids, "labels": _label(record[columns.label], numbers, where)}

    return records.convert(part, convert, ("input_ids", "labels"))


def _label(value: Any, numbers: dict[str, int] | None, where: str) -> float:
    if numbers is not None:
        number = numbers.get(str(value))
        if number is None:
            expected = f"one of the training data's labels: {', '.join(numbers)}"
            raise bad_input(where, f"label {value!r}", expected, "correct the record")
        return number
    try:
        result = float(value)
    except (TypeError, ValueError):
        result = math.nan
    if not math.isfinite(result):
        raise bad_input(where, f"label {value!r}", "a number, for regression", "correct the record")
    return result
