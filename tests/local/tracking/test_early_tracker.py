"""A tracker process that is started before anything else: a run uses it, and without a run it leaves no trace."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from allranks.history.workspace import Workspace
from allranks.local.tracking import process
from allranks.local.tracking.client import Tracking
from allranks.local.tracking.process import EarlyTracker
from pipeline_files import write

ECHO = (
    "import json, os, sys\n"
    "for line in sys.stdin:\n"
    "    request = json.loads(line)\n"
    "    print(json.dumps({'number': request['number'], 'run_id': str(os.getpid())}), flush=True)\n"
)


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracker that answers with its process id."""
    monkeypatch.setattr(process, "command", lambda _: (sys.executable, "-I", "-S", "-c", ECHO))


async def created(tracking: Tracking) -> int:
    tracking.warm_up()
    try:
        return int(await tracking.create("experiment", "run", {}))
    finally:
        await tracking.close()


def children() -> set[psutil.Process]:
    """The children of this process, among them those that other tests share."""
    return set(psutil.Process().children())


def test_a_run_uses_it_and_ends_it(echo: None, workspace: Workspace) -> None:
    others = children()
    with EarlyTracker(workspace, enabled=True) as early:
        (child,) = children() - others
        assert asyncio.run(created(Tracking(workspace, early=early))) == child.pid
        assert not child.is_running()
        assert early.take() is None


def test_it_ends_if_no_run_takes_it(echo: None, workspace: Workspace) -> None:
    others = children()
    with EarlyTracker(workspace, enabled=True):
        (child,) = children() - others
    assert not child.is_running()


def test_it_is_not_started_without_tracking(echo: None, workspace: Workspace) -> None:
    others = children()
    with EarlyTracker(workspace, enabled=False) as early:
        assert children() == others
        assert early.take() is None


def test_one_that_cannot_start_is_left_to_the_run(monkeypatch: pytest.MonkeyPatch, workspace: Workspace) -> None:
    monkeypatch.setattr(process, "command", lambda _: ("/no/such/program",))
    with EarlyTracker(workspace, enabled=True) as early:
        assert early.take() is None


def test_it_creates_nothing_before_its_first_request(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "workspace")
    tracker = process.start(process.command(workspace))
    tracker.communicate()  # the end of its input: it has imported MLflow by the time that it reads that
    assert tracker.returncode == 0
    assert not workspace.root.exists()


@pytest.mark.slow
def test_an_invalid_job_creates_no_workspace(tmp_path: Path) -> None:
    job = write(tmp_path, "job.yml", "type: command\ncommand: python -V\nenvironment: azureml:any:1\ninputs: 3\n")
    command = [sys.executable, "-m", "allranks.cli.main", "run", str(job), "--folder", str(tmp_path / "runs")]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 2, completed.stderr
    assert not (tmp_path / "runs").exists()
