"""select_best: the best of a list of numbers, as a parallel_for loop writes it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from component_processes import run_small_script

from allranks.errors import InputError

Importer = Callable[[str, str], Any]


@pytest.mark.parametrize(
    ("numbers", "goal", "index"),
    [
        ("[0.91, 0.95, 0.93]", "maximize", 1),
        ('["0.91", "0.9", "0.93"]', "minimize", 1),
        ("[0.5, 0.5]", "maximize", 0),
        ("[3]", "minimize", 0),
    ],
)
def test_the_place_of_the_best(code: Importer, numbers: str, goal: str, index: int) -> None:
    script = code("select_best", "select_best")
    assert script.best(script.numbers(numbers), goal) == index


def test_the_outputs_are_files_with_texts(tmp_path: Path) -> None:
    places = [f"--{name}={tmp_path / name}" for name in ("index", "value")]
    ended = run_small_script("select_best", "--numbers", "[0.25, 0.75]", *places, folder=tmp_path)
    assert ended.codes == [0], ended.errors
    assert [(tmp_path / name).read_text() for name in ("index", "value")] == ["1", "0.75"]


@pytest.mark.parametrize("numbers", ["", "[]", "0.5", "[0.5, null]", "[NaN]", '{"a": 1}'])
def test_anything_but_numbers_is_refused(code: Importer, numbers: str) -> None:
    script = code("select_best", "select_best")
    with pytest.raises(InputError, match="is not a list of finite numbers"):
        script.numbers(numbers)
