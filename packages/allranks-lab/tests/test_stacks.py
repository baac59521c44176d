"""The table of launches: every row is tried again in one cell; `tools/make_stacks.py` of the package tries them all."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import typer

from allranks.checks.plan import findings
from allranks.contract.layout import Layout
from allranks.local.stacks import Stack
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
from allranks_lab.stacks import command
from allranks_lab.stacks.launches import LAUNCHES, LAYOUTS, Launch, run_trial

pytestmark = pytest.mark.slow  # starts ranks of every stack

PROJECT = Path(__file__).resolve().parents[3]
TABLE = PROJECT / "packages/allranks-lab/docs/stacks.md"

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


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.name)
def test_no_launch_is_taken_for_a_mistake(launch: Launch) -> None:
    """Also torchrun per node under MPI, and DeepSpeed's launcher without ssh."""
    for layout in launch.layouts:
        step = Step(
            "train",
            launch.command_for(layout),
            distribution=launch.distribution(layout),
            instance_count=layout.instance_count,
        )
        found = findings(Plan("p", Graph((step,))), today=date(2026, 11, 1))
        assert [*found.warnings, *found.advice] == []


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


@pytest.mark.recipe
def test_the_command_tries_what_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    torch = LAUNCHES[0]
    absent = replace(torch, stacks=(Stack("Absent", ("no-such-package",), "pip install no-such-package"),))
    broken = replace(torch, command="exit 3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "FIRST", (torch, absent))
    command.verify_stacks(json=True)
    tried, missing = json.loads(capsys.readouterr().out)
    assert (tried["works"], tried["wrong"]) == (True, "")
    assert (missing["works"], missing["install"]) == (None, "pip install no-such-package")
    monkeypatch.setattr(command, "FIRST", (broken, absent))
    with pytest.raises(typer.Exit) as ended:
        command.verify_stacks()
    assert ended.value.exit_code == 1
    printed = capsys.readouterr()
    assert "pip install no-such-package" in printed.out
    assert "PyTorch does not work" in printed.err
