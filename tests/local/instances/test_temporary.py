"""The temporary folder of an instance: on disk, and gone afterwards, whoever was killed."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import bounded
from allranks.history.records import Status
from allranks.local.instances import temporary
from allranks.plan.graph import Step
from allranks.workspace import Workspace

BOUND = 30
"""Seconds after which what is waited for will not come any more."""


def test_tmp_of_the_rack_is_on_the_disk_of_the_workspace(rack_works: bool, run_steps, workspace: Workspace) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    record = run_steps(Step("look", "stat -c '%d %a' /tmp; mktemp; df /tmp >&2"), instances="rack")
    assert record.status is Status.COMPLETED, record.verdict
    device, mode, *_ = Path(record.step("look").ranks[0].log).read_text().split()
    assert (int(device), mode) == (os.stat(workspace.root).st_dev, "1777")


def test_it_is_gone_with_all_that_is_in_it(rack_works: bool, run_steps, workspace: Workspace) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    command = (
        "mkdir -p /tmp/deep/closed; touch /tmp/deep/closed/file; ln -s /etc /tmp/link; chmod -R 0 /tmp/deep; exit 1"
    )
    record = run_steps(Step("write", command), instances="rack")
    assert record.status is Status.FAILED
    assert list(workspace.temporary.iterdir()) == []
    assert Path("/etc").exists()


def test_what_an_owner_that_was_killed_left_is_swept_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    used, left = temporary.make(tmp_path, 2), temporary.make(tmp_path, 1)
    (left.instances[0] / "file").touch()
    os.close(left.lock)  # the kernel does so when a process ends
    temporary.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == [used.folder]
    assert len(list(used.folder.iterdir())) == 2
    used.remove()
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_sweep(tmp_path: Path) -> None:
    temporary.sweep(tmp_path / "none")
    (tmp_path / "a file").touch()
    temporary.sweep(tmp_path)
    assert (tmp_path / "a file").exists()


ENGINE = """
import sys
from pathlib import Path
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
command = f"touch ${{TMPDIR:-/tmp}}/file; echo ${{TMPDIR:-/tmp}} > {workspace.root}/reached; exec sleep 1000"
run(Plan("p", Graph((Step("spin", command),))), workspace, Options(instances=sys.argv[2], grace=0.1))
"""


@pytest.fixture
def engine(workspace: Workspace, kind: str) -> Iterator[subprocess.Popen[bytes]]:
    """An engine whose step has written a temporary file."""
    with bounded.Popen([sys.executable, "-c", ENGINE, str(workspace.root), kind]) as process:
        try:
            bounded.until(lambda: (workspace.root / "reached").exists() and bool(_left(workspace)))
            yield process
        finally:
            process.kill()


def _left(workspace: Workspace) -> list[Path]:
    """The temporary file, wherever the instance has it."""
    told = (workspace.root / "reached").read_text().strip()
    return [*workspace.temporary.glob("*/*/file"), *Path(told or "/nowhere").glob("file")]


def test_it_is_gone_after_sigkill_of_the_supervisor(engine: subprocess.Popen[bytes], workspace: Workspace) -> None:
    for process in psutil.Process(engine.pid).children():
        process.kill()
    assert engine.wait(BOUND) == 0
    assert _left(workspace) == []


def test_the_next_run_removes_it_after_sigkill_of_both(
    engine: subprocess.Popen[bytes], workspace: Workspace, kind: str, run_steps
) -> None:
    if kind == "loopback":
        pytest.skip("its temporary folders are the machine's")
    below = psutil.Process(engine.pid).children(recursive=True)
    for process in below:
        process.send_signal(signal.SIGSTOP)  # none sees the other's end
    engine.kill()
    engine.wait(BOUND)
    for process in below:
        with contextlib.suppress(psutil.NoSuchProcess):  # some die with their parent
            process.kill()
    psutil.wait_procs(below, timeout=BOUND)
    assert _left(workspace) != []
    run_steps(Step("next", "true"), instances=kind)
    assert list(workspace.temporary.iterdir()) == []
