"""No forked rank and no fork server outlives its run, whichever process is killed."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import bounded
import daemons

BOUND = 20
"""Seconds after which a test gives up waiting for something that ought to happen at once."""

ENGINE = """
import asyncio, os, sys
from allranks.local.boot import SOURCE
from allranks.local.instances.supervisor import INSTANCE_KINDS
from pathlib import Path
from allranks.local.forkserver import shims
from allranks.local.instances.supervisor import Program, ForkServerSpec
from allranks.local.instances.supervisor import InstanceSpec, Supervisor

async def main(kind, folder):
    supervisor = await Supervisor.start(kind)
    environment = {{"PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin"}}
    spec = ForkServerSpec(sys.executable, tuple(environment.items()), {modules!r})
    instances = INSTANCE_KINDS[kind].instances(range(2))
    events = asyncio.Queue()
    for number, instance in enumerate(instances):
        forks = f"{{folder}}/forks-{{number}}"
        path = shims.write(Path(forks), Path(sys.executable)) + ":" + environment["PATH"]
        on = InstanceSpec(number, instance.address, instance.hostname,
                          tuple((other.address, other.hostname) for other in instances), 1 << 20, folder,
                          (folder, sys.prefix, SOURCE), forks=forks)
        programs = [
            Program(f"rank {{rank}}", ("/bin/bash", "-c", "python train.py {mark}"), {{"PATH": path}}, folder,
                    f"{{folder}}/log_{{number}}_{{rank}}")
            for rank in range(2)
        ]
        await supervisor.launch(f"agent {{number}}", on, programs, events, spec)
    gone = 0
    while gone < 2:
        event = await events.get()
        gone += event.kind == "gone"
    await supervisor.close()
    print("closed", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""

# Each rank leaves a child in its process group, and a daemon that has left it with an environment of its own.
RANK = """
import subprocess, sys, threading
daemon = subprocess.Popen(["env", "-i", "setsid", "sleep", sys.argv[1]])
child = subprocess.Popen(["sleep", sys.argv[1]])
threading.Event().wait()
"""


@pytest.fixture
def mark() -> str:
    return daemons.new_mark()


@contextlib.contextmanager
def _engine(kind: str, folder: Path, mark: str, modules: tuple[str, ...]) -> Iterator[subprocess.Popen[str]]:
    (folder / "train.py").write_text(RANK, encoding="utf-8")
    source = textwrap.dedent(ENGINE).format(mark=mark, modules=modules)
    command = [sys.executable, "-c", source, kind, str(folder)]
    with bounded.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def engine(kind: str, tmp_path: Path, mark: str) -> Iterator[subprocess.Popen[str]]:
    """An engine in a process of its own, with four forked ranks and their daemons running."""
    with _engine(kind, tmp_path, mark, ("json",)) as process:
        bounded.until(lambda: len(daemons.sleepers(mark)) == 8, "the ranks did not start")
        yield process


def _fork_server(engine: subprocess.Popen[str]) -> psutil.Process:
    """Return the fork server of an engine: the only process below it that is still called by its own command."""
    found = []
    for process in psutil.Process(engine.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            if "allranks.local.forkserver.main" in " ".join(process.cmdline()):
                found.append(process)
    return min(found, key=lambda process: process.create_time())


def _nothing_is_left(below: list[psutil.Process], mark: str) -> None:
    assert psutil.wait_procs(below, timeout=BOUND)[1] == []
    daemons.until_gone(mark)


@pytest.mark.parametrize("victim", ["engine", "supervisor"])
def test_nothing_survives_the_death_of(victim: str, engine: subprocess.Popen[str], mark: str) -> None:
    below = psutil.Process(engine.pid).children(recursive=True)
    assert _fork_server(engine) in below
    (supervisor,) = psutil.Process(engine.pid).children()
    os.kill(engine.pid if victim == "engine" else supervisor.pid, signal.SIGKILL)
    engine.wait(BOUND)
    _nothing_is_left(below, mark)


@pytest.mark.parametrize("victim", ["engine", "fork server"])
def test_nothing_survives_a_death_during_the_imports(victim: str, kind: str, tmp_path: Path, mark: str) -> None:
    """A fork server that is killed before it forks is replaced: the ranks start as new processes."""
    with _engine(kind, tmp_path, mark, ("numpy", "asyncio", "unittest", "email", "xml")) as engine:
        fork_servers: list[psutil.Process] = []

        def starting() -> bool:
            with contextlib.suppress(ValueError, psutil.NoSuchProcess):
                fork_servers.append(_fork_server(engine))
            return bool(fork_servers)

        bounded.until(starting, "no fork server was started")
        below = psutil.Process(engine.pid).children(recursive=True)
        os.kill(engine.pid if victim == "engine" else fork_servers[0].pid, signal.SIGKILL)
        if victim == "fork server":
            bounded.until(lambda: len(daemons.sleepers(mark)) == 8, "the ranks did not start without a fork server")
            engine.kill()
        engine.wait(BOUND)
        _nothing_is_left(below, mark)
