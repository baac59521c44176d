"""The table of launches: every row is tried again on two instances; `docs/make_stacks.py` tries every layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.contract.layout import Layout
from allranks.local.stacks.launches import LAUNCHES, LAYOUTS, Launch
from allranks.local.stacks.trial import try_out
from allranks.local.workspace import Workspace

PROJECT = Path(__file__).resolve().parents[2]
TABLE = PROJECT / "docs" / "stacks.md"


def test_the_table_is_of_these_launches_and_all_of_them_work() -> None:
    rows = [
        line.strip("| \n").split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"
    ]
    assert [row[0] for row in rows[2:]] == [launch.name for launch in LAUNCHES]
    for launch, row in zip(LAUNCHES, rows[2:], strict=True):
        assert row[1:] == ["yes, yes" if layout in launch.layouts else "-" for layout in LAYOUTS]


@pytest.mark.slow
@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_a_launch(launch: Launch, tmp_path: Path) -> None:
    if stack := launch.missing(PROJECT):
        pytest.skip(f"no {stack.name}: {stack.install}")
    assert try_out(launch, Layout(2, 1), "auto", Workspace(tmp_path), PROJECT) == ""
