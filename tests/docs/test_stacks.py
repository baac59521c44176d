"""The table of launches: every row is tried again in one cell; `tools/make_stacks.py` tries them all."""

from pathlib import Path

import pytest

from allranks.contract.layout import Layout
from allranks.doctor import LAUNCHES, LAYOUTS, Launch, run_trial
from allranks.workspace import Workspace

PROJECT = Path(__file__).resolve().parents[2]
TABLE = PROJECT / "docs/reports/stacks.md"

CELLS = ((Layout(1, 2), "rack"), (Layout(2, 1), "loopback"), (Layout(2, 1), "rack"), (Layout(1, 2), "loopback"))
"""Of those that a launch can be in, one launch after the other is tried in the next: four ranks would take twice as
long."""


def test_the_table_is_of_these_launches_and_all_of_them_work() -> None:
    rows = [
        line.strip("| \n").split(" | ") for line in TABLE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"
    ]
    assert [row[0] for row in rows[2:]] == [launch.name for launch in LAUNCHES]
    for launch, row in zip(LAUNCHES, rows[2:], strict=True):
        assert row[1:] == ["yes, yes" if layout in launch.layouts else "-" for layout in LAYOUTS]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("stacks") / ".allranks")


@pytest.mark.recipe  # two minutes of CPU, for what the tests of launchers and components show of each by itself
@pytest.mark.slow
@pytest.mark.xdist_group("stacks")  # they share the workspace
@pytest.mark.parametrize(("number", "launch"), list(enumerate(LAUNCHES)), ids=[launch.name for launch in LAUNCHES])
def test_a_launch(number: int, launch: Launch, workspace: Workspace, rack_works: bool) -> None:
    if stack := launch.missing(PROJECT):
        pytest.skip(f"no {stack.name}: {stack.install}")
    cells = [cell for cell in CELLS if cell[0] in launch.layouts]
    layout, kind = cells[number % len(cells)]
    if kind == "rack" and not rack_works:
        kind = "loopback"
    assert run_trial(launch, layout, kind, workspace, PROJECT) == ""
