"""Ids and names are complete in every terminal, because a user types them."""

from collections.abc import Callable

import pytest

from allranks.cli.views.progress import LiveTree
from allranks.cli.views.run_list import print_runs
from allranks.cli.views.runs import print_run
from allranks.history.records import RunRecord


@pytest.mark.parametrize("width", [20, 40, 60, 120])
def test_tables_are_never_cut(width: int, running: RunRecord, screen: Callable[..., object]) -> None:
    console = screen(width=width)
    running.id = "1234567890abcdef"
    running.name = "a_pipeline_with_a_long_name"
    print_runs(console, [running])  # type: ignore[arg-type]
    assert any("1234567890abcdef" in line for line in console.lines)  # type: ignore[attr-defined]
    running.steps[1].name = "train_a_classifier_on_all_the_images_of_the_year"
    print_run(console, running)  # type: ignore[arg-type]
    assert any(running.steps[1].name in line for line in console.lines)  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [20, 40, 120])
def test_the_tree_at_the_end_has_whole_names(width: int, failed: RunRecord, screen: Callable[..., object]) -> None:
    console = screen(width=width, terminal=True)
    failed.steps[1].name = "train_a_classifier_on_all_the_images_of_the_year"
    LiveTree(console).ended(failed)  # type: ignore[arg-type]
    assert any(failed.steps[1].name in line for line in console.lines)  # type: ignore[attr-defined]
