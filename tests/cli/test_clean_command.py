"""`allranks clean` shows what it frees, asks, and removes it."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

import bounded
from allranks.history import stored
from allranks.local.engine import run
from allranks.local.instances import temporary
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
from allranks_command import PATIENCE, called, content, environment, words


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two runs, and with temporary files of an engine that was killed."""
    workspace = Workspace(tmp_path / ".allranks")
    for name in ("first", "second"):
        run(Plan(name, Graph((Step(name, f"echo {name}"),))), workspace, Options(instances="loopback", track=False))
    made = temporary.make(workspace.temporary, 1)
    (made.instances[0] / "big").write_bytes(b"x" * 100_000)
    os.close(made.lock)
    return tmp_path


def names(folder: Path) -> list[str]:
    return [record.name for record in stored.runs(Workspace(folder / ".allranks"))]


def test_it_says_what_it_would_remove_and_removes_nothing(project: Path) -> None:
    before = content(project)
    done = called("clean", "--keep", "1", "--dry-run", folder=project)
    assert (done.code, done.err) == (0, "")
    assert "first" in done.out
    assert "second" not in done.out
    assert "1 run: " in done.out
    assert "1 leftover folder: " in done.out
    assert "MLflow remain" in done.out
    assert content(project) == before


def test_with_yes_it_does_not_ask(project: Path) -> None:
    done = called("clean", "--keep", "1", "--yes", folder=project)
    assert (done.code, done.err) == (0, "")
    assert "freed" in done.out
    assert names(project) == ["second"]
    assert list((project / ".allranks" / "tmp").iterdir()) == []
    assert len(list((project / ".allranks" / "runs").iterdir())) == 1
    again = called("clean", "--keep", "1", folder=project)
    assert (again.code, again.out) == (0, "There is nothing to remove.\n")


def test_young_runs_stay_by_default(project: Path) -> None:
    assert called("clean", "--yes", folder=project).code == 0
    assert names(project) == ["second", "first"]
    assert called("clean", "--older-than", "0d", "--yes", folder=project).code == 0
    assert names(project) == []


def test_without_a_terminal_it_wants_to_be_told(project: Path) -> None:
    done = called("clean", "--keep", "1", folder=project)
    assert done.code == 2
    assert "--yes" in done.err
    assert names(project) == ["second", "first"]


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 1, ["second", "first"]), ("y\n", 0, ["second"])])
def test_a_person_is_asked(project: Path, answer: str, code: int, left: list[str]) -> None:
    ours, theirs = pty.openpty()
    with bounded.Popen(
        words("clean", "--keep", "1"), cwd=project, env=environment(), stdin=theirs, stdout=subprocess.PIPE
    ) as process:
        os.write(ours, answer.encode())
        out, _ = process.communicate(timeout=PATIENCE)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code
    assert b"Remove them? [y/N]" in out
    assert names(project) == left


def test_an_age_that_is_none(project: Path) -> None:
    done = called("clean", "--older-than", "soon", folder=project)
    assert (done.code, done.out) == (2, "")
    assert "--older-than 30d" in done.err
