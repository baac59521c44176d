"""compare_trainings: figures of histories, the page that shows them, and files that are no history."""

import json
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from component_processes import folder_of

from allranks.errors import InputError
from allranks.runtime import arguments
from allranks.runtime.spec_arguments import SPEC

Importer = Callable[[str, str], Any]


def history(folder: Path, name: str, losses: list[float], **changes: Any) -> Path:
    points = [
        {"step": 10 * number + 1, "loss": loss, "seconds": 0.5 if number else 9.0, "peak_memory": 100.0 + number}
        for number, loss in enumerate(losses)
    ]
    content: dict[str, Any] = {
        "strategy": "ddp",
        "deepspeed_stage": None,
        "launcher": "pytorch",
        "world_size": 4,
        "parameters": 1000,
        "sample": "token",
        "samples_per_step": 64,
        "points": points,
    }
    file = folder / name
    file.write_text(json.dumps(content | changes))
    return file


@pytest.fixture
def compare(code: Importer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compares histories in a folder of its own, with `out` the output, and returns what comparison.json has."""
    monkeypatch.chdir(tmp_path)
    program = code("compare_trainings", "compare_trainings")

    def run(*files: Path, title: str = "Compared") -> Any:
        given = {f"history_{number}": file for number, file in enumerate(files, start=1)}
        given |= {"title": title, "comparison": tmp_path / "out"}
        words = [f"--{name}={value}" for name, value in given.items()]
        monkeypatch.setattr(program, "arguments", lambda: arguments(folder_of("compare_trainings") / SPEC, words))
        program.main()
        return json.loads((tmp_path / "out/comparison.json").read_text(), object_hook=lambda found: Namespace(**found))

    return run


def test_the_figures_and_the_page(compare: Any, tmp_path: Path) -> None:
    rows = compare(
        history(tmp_path, "a", [4.0, 3.0, 2.0]),
        history(tmp_path, "b", [4.0, 3.003, 2.0], strategy="deepspeed", deepspeed_stage=3),
        history(tmp_path, "c", [4.0, 3.0], launcher="mpi"),
        title="<Losses> & more",
    )
    assert [row.name for row in rows] == ["ddp (1)", "deepspeed ZeRO 3", "ddp (2)"]
    assert [row.difference for row in rows] == [0, pytest.approx(0.001), 0]
    assert (rows[0].loss, rows[0].step_seconds, rows[0].samples_per_second, rows[0].peak_memory) == (2.0, 0.5, 128, 102)
    assert (rows[2].launcher, rows[2].sample) == ("mpi", "token")
    page = (tmp_path / "out/comparison.html").read_text()
    assert page == (tmp_path / "outputs/comparison.html").read_text()
    assert "&lt;Losses&gt; &amp; more" in page
    assert not re.search(r'https?:|//|src=|href="[^#]|@import|url\([^#]', page)
    assert [page.count(f"stroke: var(--s{series})") for series in range(4)] == [1, 1, 1, 0]
    for value in ("1.0e-03", "2.0000", "0.500", "128", "102"):
        assert f"{value}</td>" in page
    assert "3 trainings of 1,000 parameters, 21 steps of 64 tokens" in page
    assert "<th>tokens a second</th>" in page


def test_each_training_has_the_unit_of_its_history(compare: Any, tmp_path: Path) -> None:
    images = history(tmp_path, "a", [4.0], sample="image")
    compare(images)
    assert "<th>images a second</th>" in (tmp_path / "out/comparison.html").read_text()
    compare(images, history(tmp_path, "b", [4.0]))
    page = (tmp_path / "out/comparison.html").read_text()
    assert re.findall(r"<th>(\w+ a second)</th>|>([\d.,]+ \w+s)</td>", page) == [
        ("samples a second", ""),
        ("", "7 images"),
        ("", "7 tokens"),
    ]


def test_a_loss_that_is_no_number_leaves_a_gap(compare: Any, tmp_path: Path) -> None:
    rows = compare(history(tmp_path, "a", [4.0, 3.0]), history(tmp_path, "b", [4.0, float("nan"), 2.0, 1.0]))
    assert [row.difference for row in rows] == [0, None]
    page = (tmp_path / "out/comparison.html").read_text()
    paths = [re.search(rf'd="([^"]*)"[^>]*var\(--s{series}\)', page) for series in (0, 1)]
    assert [path and path[1].count("M") for path in paths] == [1, 2]
    assert "no number</td>" in page


def test_one_point_is_enough(compare: Any, tmp_path: Path) -> None:
    assert len(compare(history(tmp_path, "a", [4.0]))) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "is not a history"),
        ("[]", "is not a history"),
        ('{"points": [{"step": 1, "seconds": 1, "samples": 2}], "world_size": 1}', "KeyError\\('loss'\\)"),
        ("empty", "has no point"),
    ],
)
def test_a_file_that_is_no_history(compare: Any, tmp_path: Path, content: str | None, said: str) -> None:
    file = tmp_path / "h"
    if content == "empty":
        history(tmp_path, "h", [])
    elif content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=said):
        compare(history(tmp_path, "a", [4.0]), file)
    assert not (tmp_path / "out").exists()


def test_no_history(compare: Any) -> None:
    with pytest.raises(InputError, match="no history is given"):
        compare()
