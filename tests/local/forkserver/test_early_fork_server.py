"""A run imports packages while it is compiled, if the last run of its file needed them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import bounded
from allranks.local.forkserver.early import EarlyForkServer
from allranks.local.instances.programs import ForkServerSpec
from allranks.runs.workspace import Workspace

BOUND = 30
"""Seconds after which a test gives up waiting."""

ENGINE = """
import sys, threading
from pathlib import Path
from allranks.local.forkserver.early import EarlyForkServer
from allranks.runs.workspace import Workspace
with EarlyForkServer(Workspace(Path(sys.argv[1])), "job.yml", enabled=True) as server:
    print(server.socket, flush=True)
    threading.Event().wait()
"""


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition with a bound; there is no event for the end of a process that is not ours."""
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path / ".allranks")
    workspace.make()
    return workspace


def spec(**variables: str) -> ForkServerSpec:
    return ForkServerSpec(sys.executable, tuple(sorted({"PATH": "/usr/bin:/bin", **variables}.items())), ("json",))


def remember(workspace: Workspace, *specs: ForkServerSpec, file: str = "job.yml") -> None:
    with EarlyForkServer(workspace, file, enabled=True) as server:
        server.remember(specs)


def is_started(workspace: Workspace, *, file: str = "job.yml", enabled: bool = True) -> bool:
    with EarlyForkServer(workspace, file, enabled=enabled) as server:
        return server.socket != ""


def test_the_first_fork_server_of_a_file_is_remembered(workspace: Workspace) -> None:
    assert not is_started(workspace)
    remember(workspace, spec(), spec(OMP_NUM_THREADS="1"))
    assert is_started(workspace)
    assert not is_started(workspace, file="other.yml")
    assert not is_started(workspace, enabled=False)
    assert (workspace.root / "fork_servers.json").stat().st_mode & 0o77 == 0
    remember(workspace)  # every step was reused
    assert not is_started(workspace)


def test_no_secret_is_remembered(workspace: Workspace) -> None:
    remember(workspace, spec(HF_TOKEN="hf_secret"))
    assert not is_started(workspace)


def test_a_workspace_that_is_kept_warm_needs_none(workspace: Workspace) -> None:
    remember(workspace, spec())
    workspace.warm.touch()
    assert not is_started(workspace)


def test_ranks_are_forked_from_it_and_it_ends_with_the_block(kind: str, workspace: Workspace, tmp_path: Path) -> None:
    from test_warm import MODULE, RANK, run_on, spec_of

    code = tmp_path / "code"
    code.mkdir()
    (code / "imported_early.py").write_text(MODULE)
    (code / "train.py").write_text(RANK)
    remember(workspace, spec_of(code))
    with EarlyForkServer(workspace, "job.yml", enabled=True) as server:
        socket = Path(server.socket)
        until(socket.exists, "it did not listen")
        # as_dict, since another test's child may be a zombie, which has no command line.
        children = {child: child.as_dict(["cmdline"], ad_value=[])["cmdline"] for child in psutil.Process().children()}
        (early,) = (child for child, words in children.items() if "forkserver.warm" in " ".join(words))
        first = asyncio.run(asyncio.wait_for(run_on(kind, code, socket), BOUND))
        assert first not in ("", "cold")
        assert asyncio.run(asyncio.wait_for(run_on(kind, code, socket), BOUND)) == first
        below = early.children(recursive=True)
    assert psutil.wait_procs([early, *below], timeout=BOUND)[1] == []
    assert not socket.exists()


def test_it_ends_with_a_killed_engine(workspace: Workspace) -> None:
    remember(workspace, spec())
    command = [sys.executable, "-c", ENGINE, str(workspace.root)]
    with bounded.Popen(command, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        socket = Path(engine.stdout.readline().strip())
        until(lambda: len(psutil.Process(engine.pid).children(recursive=True)) == 2, "it did not import")
        below = psutil.Process(engine.pid).children(recursive=True)
        engine.kill()
        assert psutil.wait_procs(below, timeout=BOUND)[1] == []
    assert os.path.exists(socket)
    assert is_started(workspace)
    assert not os.path.exists(socket)  # the next run removes what is left
