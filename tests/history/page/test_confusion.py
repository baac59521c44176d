"""The confusion matrix, from what a step left in its outputs."""

import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.history.page.figures import LARGEST_FILE, LARGEST_MATRIX, confusions
from allranks.history.page.page import page
from run_records import NOW, make_run, make_step, write_matrix
from shown_page import Page


def test_the_matrix_is_shown_with_its_totals(tmp_path: Path) -> None:
    write_matrix(tmp_path / "c.json", ["cat", "dog", "owl"], [[8, 2, 0], [1, 9, 0], [0, 0, 0]])
    step = make_step("evaluate", folder=str(tmp_path), artifacts=["model.bin", "c.json"])
    (confusion,) = confusions(step)
    assert [confusion.recall(place) for place in range(3)] == [0.8, 0.9, None]
    assert confusion.precision(0) == 8 / 9
    text = Page(page(make_run(step), NOW)).text
    assert "17 of 20 right, 85.0 %" in text


Spoiler = Callable[[Path], object]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: None,
        lambda path: path.write_text("{"),
        lambda path: path.write_bytes(b"\xff\xfe\x00"),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text('{"schema_type": "confusion_matrix"}'),
        lambda path: path.write_text('{"schema_type": "confusion_matrix", "data": [1]}'),
        lambda path: path.write_text(" " * (LARGEST_FILE + 1)),
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
        lambda path: path.symlink_to(path.name),
        lambda path: write_matrix(path, ["a"], [[1]], "accuracy_table"),
        lambda path: write_matrix(path, [], []),
        lambda path: write_matrix(path, ["a", "b"], [[1, 2]]),
        lambda path: write_matrix(path, ["a", "b"], [[1, 2], [3]]),
        lambda path: write_matrix(path, ["a", "b"], [[1, 2], [3, "4"]]),
        lambda path: write_matrix(path, ["a"], [[math.nan]]),
        lambda path: write_matrix(path, ["a"], [[-1]]),
        lambda path: write_matrix(path, ["a"], [[10**400]]),
        lambda path: write_matrix(path, ["a"], [[True]]),
        lambda path: write_matrix(path, "ab", [[1, 2], [3, 4]]),
        lambda path: write_matrix(path, list(range(LARGEST_MATRIX + 1)), [[1] * 65] * 65),
    ],
)
def test_what_is_no_matrix_is_passed_over(tmp_path: Path, spoil: Spoiler) -> None:
    spoil(tmp_path / "c.json")
    step = make_step("evaluate", folder=str(tmp_path), artifacts=["c.json"])
    assert confusions(step) == []
    assert "Confusion" not in Page(page(make_run(step), NOW)).text
