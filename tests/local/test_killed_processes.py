"""Each process of a run is killed: the engine's log and the run's message name it, and no process is left."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

import bounded
from allranks import engine_log
from allranks.workspace import Workspace
from mpirun import MPIRUN

pytestmark = pytest.mark.slow  # each starts an engine

BOUND = 60
"""Seconds after which a test gives up waiting."""

RANKS = 2

# Code that imports torch has a fork server.
SCRIPT = """
import os, sys, time
import torch
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""

ENGINE = """
import sys
from pathlib import Path
from allranks.contract.pytorch import PyTorch
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.workspace import Workspace

folder, command, track = sys.argv[1:]
step = Step("train", command, code=Code(folder + "/code", "digest"), instance_count=2,
            distribution=PyTorch(1))
options = Options(instances="loopback", track=bool(track), grace=0.2, slots=8)
record = run(Plan("p", Graph((step,))), Workspace(Path(folder, "w")), options)
print(record.status, record.verdict.reason if record.verdict else "", *record.steps[0].notes)
"""


class Engine:
    """An engine in a process of its own, whose ranks wait for the gate."""

    def __init__(self, folder: Path, track: str) -> None:
        self.gate = folder / "code" / "gate"
        self._workspace = Workspace(folder / "w")
        self.gate.parent.mkdir()
        (folder / "code" / "train.py").write_text(SCRIPT)
        command = [sys.executable, "-c", ENGINE, str(folder), f"python train.py {self.gate}"]
        command.append(track)
        self.process = bounded.Popen(command, stdout=subprocess.PIPE, text=True)

    def log(self) -> list[dict[str, Any]]:
        lines = [line for file in self._workspace.runs.glob(f"*/{engine_log.FILE}") for line in file.open()]
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def lines(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.log() if line["event"] == event]

    def below(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def message(self) -> str:
        return self.process.communicate(timeout=BOUND)[0].strip()


@contextmanager
def running(folder: Path, track: str = "") -> Iterator[tuple[Engine, list[psutil.Process]]]:
    """An engine whose ranks have started, and the processes below it, of which none is left afterwards."""
    engine = Engine(folder, track)
    below: list[psutil.Process] = []
    try:
        bounded.until(lambda: _ranks(engine) == RANKS, "the ranks did not start")
        below = engine.below()
        yield engine, below
        assert psutil.wait_procs(below, timeout=BOUND)[1] == []
    finally:
        engine.process.kill()
        engine.process.wait()


def _ranks(engine: Engine) -> int:
    """Return the number of ranks, without the shims that wait for them."""
    count = 0
    for process in engine.below():
        with suppress(psutil.NoSuchProcess):
            count += process.cmdline()[:2] == ["python", "train.py"]
    return count


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def test_an_agent(tmp_path: Path) -> None:
    with running(tmp_path) as (engine, _):
        agent = engine.lines("agent started")[1]
        kill(agent["started"])
        assert "instance 1 (127.0.0.2): its agent was killed from outside the run" in engine.message()
    (line,) = [line for line in engine.lines("agent ended") if line["level"] == "warning"]
    assert (line["agent"], line["ended"], line["signal"]) == (agent["agent"], agent["started"], signal.SIGKILL)


def test_the_fork_server(tmp_path: Path) -> None:
    """The ranks continue without it."""
    with running(tmp_path) as (engine, _):
        pid = engine.lines("fork server started")[0]["fork_server"]
        kill(pid)
        bounded.until(lambda: engine.lines("fork server ended"), "its end is not in the log")
        engine.gate.touch()
        assert engine.message() == "Completed"
    (line,) = engine.lines("process ended")
    assert (line["ended"], line["signal"]) == (pid, signal.SIGKILL)


@pytest.mark.skipif(find_spec("mlflow") is None, reason="no MLflow")
def test_the_tracker(tmp_path: Path) -> None:
    """The run continues without it."""
    with running(tmp_path, track="yes") as (engine, below):
        (tracker,) = [process for process in below if "tracking" in " ".join(process.cmdline())]
        tracker.kill()
        engine.gate.touch()
        message = engine.message()
    assert message.startswith("Completed")
    assert "the MLflow process failed: it was ended by SIGKILL" in message
    (line,) = engine.lines("tracker ended")
    assert (line["ended"], line["code"]) == (tracker.pid, -signal.SIGKILL)


@pytest.mark.parametrize("count", [4, pytest.param(200, marks=pytest.mark.recipe)])
def test_any_process_at_any_moment(count: int, tmp_path: Path, rack_works: bool) -> None:
    """The supervisor, an agent, the fork server, the tracker, mpirun, or a rank: from the first
    millisecond on, no run hangs, and no process is left."""
    kinds = "loopback,rack" if rack_works else "loopback"
    program = Path(__file__).with_name("killed_at_random.py")
    command = [sys.executable, str(program), str(tmp_path), str(count), kinds, "pytorch,mpi" if MPIRUN else "pytorch"]
    with bounded.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as runs:
        assert runs.stdout is not None
        lines = list(runs.stdout)  # it ends by itself if a run hangs
    wrong = [line for line in lines if not re.match(r"(Completed|Failed), left: 0, killed: ", line)]
    assert (len(lines), wrong) == (count, [])
    assert sum("Failed" in line for line in lines) > count // 4
