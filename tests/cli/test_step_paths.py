"""Steps of nested graphs on the command line, by their paths."""

from pathlib import Path

import pytest

from allranks.history.store import Store
from allranks.workspace import Workspace
from allranks_command import called, write
from run_records import make_ranks, make_run, make_step


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """A folder with a run of a loop: two iterations of one step, each with a log."""
    steps = [make_step(name) for name in ("loop", "loop[1].train", "loop[2].train")]
    for record in steps[1:]:
        record.ranks = make_ranks(1, 1)
        record.ranks[0].log = str(write(tmp_path, f"{record.name}.txt", f"log of {record.name}\n"))
    workspace = Workspace(tmp_path / ".allranks")
    workspace.make()
    with Store(workspace.database) as store:
        store.add_run(make_run(*steps), "")
    return tmp_path


@pytest.mark.parametrize("step", ["loop[2]", "loop.2", "loop[2].train", "loop.2.train"])
def test_a_step_may_be_named_by_its_path(loop: Path, step: str) -> None:
    shown = called("show", "latest", step, "--json", folder=loop).json
    assert [record["name"] for record in shown["steps"]] == ["loop[2].train"]
    lines = called("show", "latest", step, folder=loop).out.splitlines()
    assert [line.split()[0] for line in lines if "component" in line] == ["train"]
    assert called("logs", "latest", step, folder=loop).out == "log of loop[2].train\n"


@pytest.mark.parametrize("command", ["show", "logs"])
def test_a_path_that_no_step_has(loop: Path, command: str) -> None:
    done = called(command, "latest", "loop.2.trian", folder=loop)
    assert (done.code, done.out) == (2, "")
    assert "step loop.2.trian" in done.err
    assert "did you mean loop[2].train?" in done.err
