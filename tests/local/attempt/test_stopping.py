"""Ctrl-C while the engine itself is at work on a step's files, in a thread: the run ends at once."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bounded
from allranks.history import stored
from allranks.history.records import Status
from allranks.plan import codec
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Output
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace

BOUND = 60
"""Seconds after which what is waited for will not come any more."""

HUGE = 1 << 40
"""Bytes of a sparse file: it takes no room, and most of an hour to read."""

ENGINE = """
import sys
from pathlib import Path
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan import codec
from allranks.workspace import Workspace
plan = codec.loads(sys.argv[1])
run(plan, Workspace(Path(sys.argv[2])), Options(instances="loopback", grace=0.1, track=False))
"""


def _reads(tmp_path: Path, mode: str, *, deterministic: bool) -> tuple[Step, Path]:
    data = tmp_path / "data"
    data.touch()
    os.truncate(data, HUGE)
    port = Input("data", "uri_file", DataPath(str(data)), mode)
    return Step("read", "true", inputs=(port,), deterministic=deterministic), data


def _writes(tmp_path: Path, mode: str) -> tuple[Step, Path]:
    place = tmp_path / "out"
    step = Step(
        "write",
        f"truncate -s {HUGE} ${{{{outputs.out}}}}/data",
        outputs=(Output("out", "uri_folder", mode, path=str(place)),),
    )
    return step, place / "data"


CASES: dict[str, Callable[[Path], tuple[Step, Path]]] = {
    "an input is copied": lambda path: _reads(path, "download", deterministic=False),
    "an output is hashed": lambda path: _writes(path, "rw_mount"),
    "an output is copied": lambda path: _writes(path, "upload"),
}


@pytest.mark.parametrize("case", CASES)
def test_ctrl_c_while(case: str, tmp_path: Path) -> None:
    step, file = CASES[case](tmp_path)
    workspace = tmp_path / "workspace"
    plan = codec.dumps(Plan("p", Graph((step,))))
    with bounded.Popen([sys.executable, "-c", ENGINE, plan, str(workspace)]) as engine:
        try:
            bounded.until(lambda: engine.poll() is not None or _has_open(engine.pid, file))
            engine.send_signal(signal.SIGINT)
            assert engine.wait(BOUND) == 0
        finally:
            engine.kill()
    (record,) = stored.runs(Workspace(workspace))
    assert [record.status, record.steps[0].status] == [Status.CANCELED] * 2


def _has_open(process: int, path: Path) -> bool:
    """Return whether a process has a file open."""
    for link in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            if link.readlink() == path:
                return True
    return False


HANGING = """
import sys
from pathlib import Path
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.local.attempt import running_steps
from allranks.local.tracking import client
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
hang = f"import sys, time; sys.stdin.readline(); open('{workspace.root}/asked', 'w')\\nwhile True: time.sleep(1000)"
client.command = lambda *_: (sys.executable, "-c", hang)
client.may_track = lambda _: True
running_steps.TRACKING_GRACE = 0.1
run(Plan("p", Graph((Step("a", "true"),))), workspace, Options(instances="loopback", grace=0.1))
"""


def test_ctrl_c_while_mlflow_does_not_answer(tmp_path: Path) -> None:
    with bounded.Popen([sys.executable, "-c", HANGING, str(tmp_path)]) as engine:
        try:
            bounded.until(lambda: engine.poll() is not None or (tmp_path / "asked").exists())
            engine.send_signal(signal.SIGINT)
            assert engine.wait(BOUND) == 0
        finally:
            engine.kill()
    (record,) = stored.runs(Workspace(tmp_path))
    assert [record.status, record.steps[0].status] == [Status.CANCELED] * 2
