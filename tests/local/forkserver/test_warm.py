"""Runs borrow fork servers from the process of `allranks warm`, and no process outlives either of them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import bounded
from allranks.contract.expanded_command import PythonProgram
from allranks.errors import InputError
from allranks.local.boot import SOURCE
from allranks.local.forkserver import warm as warm_module
from allranks.local.forkserver.warm import serve
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.local.instances.programs import ForkServerSpec, Program
from allranks.local.instances.supervisor import Event, InstanceSpec, Supervisor
from allranks.runs.workspace import Workspace

BOUND = 30
"""Seconds after which a test gives up waiting."""

SERVER = """
import signal, sys
from pathlib import Path
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
from allranks.local.forkserver.warm import serve
from allranks.runs.workspace import Workspace
workspace = Workspace(Path(sys.argv[1]))
workspace.make()
serve(workspace.warm, float(sys.argv[2]), lambda line: print(line, flush=True))
"""

# The module is that of the process that has imported it.
MODULE = "import os\nidentity = os.urandom(8).hex()\n"
RANK = "import sys\nprint(sys.modules['imported_early'].identity if 'imported_early' in sys.modules else 'cold')\n"

ENGINE = """
import asyncio, os, sys
from pathlib import Path
sys.path[:0] = sys.argv[1].split(os.pathsep)
from test_warm import run_on
asyncio.run(run_on(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
"""


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition with a bound; there is no event for the end of a process that is not ours."""
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    # Longer than the path of a socket may be.
    return Workspace(tmp_path / ("long" * 30) / ".allranks")


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "imported_early.py").write_text(MODULE)
    (folder / "train.py").write_text(RANK)
    return folder


@pytest.fixture
def warm(workspace: Workspace) -> Iterator[subprocess.Popen[str]]:
    """The process that lends fork servers."""
    command = [sys.executable, "-c", SERVER, str(workspace.root), "600"]
    with bounded.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        until(workspace.warm.exists, "it did not listen")
        try:
            yield process
        finally:
            below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            process.terminate()
            process.wait(BOUND)
            assert psutil.wait_procs(below, timeout=BOUND)[1] == []


def spec_of(code: Path) -> ForkServerSpec:
    """The fork server of the rank."""
    environment = {
        "PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin",
        "PYTHONPATH": str(code),
        "PYTHONUNBUFFERED": "1",
    }
    return ForkServerSpec(sys.executable, tuple(sorted(environment.items())), ("imported_early",))


async def run_on(kind: str, code: Path, warm: Path | None) -> str:
    """Run one rank, and return its output."""
    supervisor = await Supervisor.start(kind, str(warm or ""))
    log = code.parent / "log"
    log.write_text("")
    spec = spec_of(code)
    environment = dict(spec.environment)
    try:
        (instance,) = INSTANCE_KINDS[kind].instances([0])
        temporary = code.parent / "temporary"
        temporary.mkdir(exist_ok=True)
        on = InstanceSpec(
            0,
            instance.address,
            instance.hostname,
            ((instance.address, instance.hostname),),
            1 << 20,
            str(temporary),
            (str(code.parent), sys.prefix, SOURCE),
        )
        arguments = ("/bin/bash", "-c", "python train.py")
        program = Program("rank", arguments, environment, str(code), str(log), PythonProgram((), script="train.py"))
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        await supervisor.launch("agent", on, [program], events, spec)
        while (event := await events.get()) is None or event.kind != "gone":
            assert event is None or event.kind != "failed", event
    finally:
        await supervisor.close()
    return log.read_text().strip()


def run(kind: str, code: Path, warm: Path | None) -> str:
    return asyncio.run(asyncio.wait_for(run_on(kind, code, warm), BOUND))


def test_runs_fork_their_ranks_from_the_same_process(
    kind: str, code: Path, workspace: Workspace, warm: subprocess.Popen[str]
) -> None:
    first = run(kind, code, workspace.warm)
    kept = psutil.Process(warm.pid).children(recursive=True)
    assert len(kept) == 1
    assert first not in ("", "cold")
    assert run(kind, code, workspace.warm) == first
    assert run(kind, code, None) != first
    until(lambda: psutil.Process(warm.pid).children(recursive=True) == kept, "a lent fork server outlived its run")


def test_a_run_imports_for_itself_if_there_is_no_such_process(kind: str, code: Path, workspace: Workspace) -> None:
    workspace.make()
    assert run(kind, code, workspace.warm) not in ("", "cold")


@pytest.mark.parametrize("victim", ["engine", "supervisor"])
def test_a_lent_fork_server_ends_with_a_killed(
    victim: str, kind: str, code: Path, workspace: Workspace, warm: subprocess.Popen[str]
) -> None:
    (code / "train.py").write_text("import threading\nprint('begun', flush=True)\nthreading.Event().wait()\n")
    folders = Path(__file__).parents
    arguments = [f"{folders[0]}{os.pathsep}{folders[2]}", kind, str(code), str(workspace.warm)]
    with bounded.Popen([sys.executable, "-c", ENGINE, *arguments]) as engine:
        try:
            log = code.parent / "log"
            until(lambda: log.exists() and "begun" in log.read_text(), "the rank did not start")
            kept, *lent = psutil.Process(warm.pid).children(recursive=True)
            assert len(lent) >= 3  # the one that waits for the fork server, the fork server, and an agent or a rank
            below = psutil.Process(engine.pid).children(recursive=True)
            os.kill(engine.pid if victim == "engine" else below[0].pid, signal.SIGKILL)
            assert psutil.wait_procs(lent, timeout=BOUND)[1] == []
            assert kept.is_running()
        finally:
            engine.kill()


def test_a_run_goes_on_when_the_lending_process_is_killed(
    kind: str, code: Path, workspace: Workspace, warm: subprocess.Popen[str]
) -> None:
    gate = code.parent / "gate"
    os.mkfifo(gate)
    (code / "train.py").write_text(f"print('begun', flush=True)\nopen({str(gate)!r}).read()\nprint('ended')\n")
    output: list[str] = []
    thread = threading.Thread(target=lambda: output.append(run(kind, code, workspace.warm)))
    thread.start()
    log = code.parent / "log"
    until(lambda: log.exists() and "begun" in log.read_text(), "the rank did not start")
    below = psutil.Process(warm.pid).children(recursive=True)
    warm.kill()
    warm.wait(BOUND)
    with open(gate, "w"):
        pass  # the rank reads the end of the file
    thread.join(BOUND)
    assert output == ["begun\nended"]
    assert psutil.wait_procs(below, timeout=BOUND)[1] == []


def test_it_ends_when_it_has_been_idle(workspace: Workspace) -> None:
    workspace.make()
    serve(workspace.warm, 0.0, print)
    assert not workspace.warm.exists()


def test_a_workspace_has_one_such_process(workspace: Workspace, warm: subprocess.Popen[str]) -> None:
    with pytest.raises(InputError, match="already runs"):
        serve(workspace.warm, 0.0, print)
    assert workspace.warm.exists()


def test_its_socket_appears_when_it_accepts_connections(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a second process would not notice the first one, and take its place."""
    listen, appeared = socket.socket.listen, []

    def observed(listener: socket.socket) -> None:
        appeared.append(workspace.warm.exists())
        listen(listener)

    monkeypatch.setattr(socket.socket, "listen", observed)
    workspace.make()
    serve(workspace.warm, 0.0, print)
    assert appeared == [False]
    assert not list(workspace.root.glob("warm*"))


def test_changed_packages_are_imported_anew(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notices: list[str] = []
    processes = warm_module._Processes(notices.append)
    spec = vars(ForkServerSpec(sys.executable, (("PYTHONPATH", str(code)),), ("imported_early",)))
    try:
        monkeypatch.setattr(warm_module, "stamp_of", lambda _: "before")
        first = processes._of(spec)
        assert processes._of(spec) is first
        monkeypatch.setattr(warm_module, "stamp_of", lambda _: "after")
        second = processes._of(spec)
        assert second is not first
        assert first is not None
        assert not first.is_alive
        assert "have changed" in notices[1]
    finally:
        for process in processes.alive():
            process.close()
