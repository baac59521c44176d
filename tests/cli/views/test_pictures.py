"""The live view of a large pipeline while it runs, and of a distributed training that has failed, as pictures.

The pictures are in the tests' temporary folder; `pytest --basetemp DIR` keeps them.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from allranks.cli.views.summary import summary
from allranks.cli.views.tree import tree
from shown_runs import failing_training, large_running

HEIGHT = 30


def recorder(width: int) -> Console:
    return Console(
        record=True, width=width, height=HEIGHT, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )


def save(console: Console, path: Path, title: str) -> list[str]:
    """Save the picture and return the lines in it."""
    text = console.export_text(clear=False)
    console.save_svg(str(path), title=title)
    return text.splitlines()


@pytest.mark.parametrize("width", [40, 80])
def test_a_running_pipeline_of_a_thousand_steps_fits_the_terminal(width: int, tmp_path: Path) -> None:
    run, now = large_running(tmp_path / "calm_otter")
    console = recorder(width)
    console.print(tree(run, now, width, HEIGHT - 2))
    lines = save(console, tmp_path / f"running_thousand_{width}.svg", "allranks run")
    assert len(lines) <= HEIGHT - 2
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for said in ("Tokenize the corpus", "calm_otter", "1,000 steps", "596 steps Completed", "tokenize_597", "Running"):
        assert said in text, said


@pytest.mark.parametrize("width", [40, 80])
def test_a_failed_training_names_the_rank_in_any_width(width: int, tmp_path: Path) -> None:
    run, now = failing_training(tmp_path / "calm_otter")
    console = recorder(width)
    console.print(tree(run, now, width, HEIGHT - 2))
    console.print()
    console.print(summary(run), overflow="fold")  # a terminal wraps its lines
    lines = save(console, tmp_path / f"failing_training_{width}.svg", "allranks run")
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for said in ("Image classification", "train", "Failed", "rank 11 on instance 1", "loss is NaN", "allranks resume"):
        assert said in text, said
