"""No process outlives its run: with real processes, on both kinds of instances, however the run ends."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest

import bounded
import daemons
from allranks import engine_log
from allranks.history.records import Status
from allranks.local.instances import supervisor
from allranks.local.instances.supervisor import Event, InstanceSpec, Program, Supervisor
from allranks.plan.graph import Step

BOUND = 30
"""Seconds after which a test gives up waiting for something that ought to happen at once."""

# Each rank leaves a child in its process group, and a daemon that has left it with an environment of its own.
STEP = "sleep 1000 & env -i setsid sleep {mark} & echo $$ > $AZURE_ML_OUTPUT_pids/$RANK; sleep 1000"

ENGINE = """
import sys
from pathlib import Path
from allranks.contract.pytorch import PyTorch
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Output
from allranks.workspace import Workspace

step = Step("spin", {command!r}, outputs=(Output("pids", "uri_folder"),), distribution=PyTorch(2), instance_count=2)
record = run(Plan("p", Graph((step,))), Workspace(Path({workspace!r})), Options(instances={kind!r}, grace=0.5))
print(record.status, record.verdict.reason if record.verdict else "", flush=True)
"""


@pytest.fixture
def mark() -> str:
    return daemons.new_mark()


def _below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture
def engine(tmp_path: Path, mark: str) -> Iterator[subprocess.Popen[str]]:
    """An engine in a process of its own, with four ranks and four daemons running on loopback, where no namespace ends
    them. Those on the rack are in forkserver/test_supervision_of_fork_servers.py."""
    source = ENGINE.format(command=STEP.format(mark=mark), workspace=str(tmp_path / "w"), kind="loopback")
    with bounded.Popen([sys.executable, "-c", textwrap.dedent(source)], stdout=subprocess.PIPE, text=True) as process:
        try:
            bounded.until(lambda: len(daemons.sleepers(mark)) == 4, "the ranks did not start")
            yield process
        finally:
            process.kill()


def _logged(folder: Path, event: str) -> dict[str, Any]:
    """Return the line of the engine's log with an event."""
    (log,) = (folder / "w" / "runs").glob(f"*/{engine_log.FILE}")
    (line,) = [line for line in map(json.loads, log.read_text().splitlines()) if line["event"] == event]
    return line


def test_nothing_survives_the_engines_death_by_sigkill(
    engine: subprocess.Popen[str], mark: str, tmp_path: Path
) -> None:
    below = _below(engine.pid)
    assert len(below) > 4
    engine.kill()
    engine.wait(BOUND)
    _, alive = psutil.wait_procs(below, timeout=BOUND)
    assert alive == []
    daemons.until_gone(mark)
    assert "the engine" in _logged(tmp_path, "supervisor ended")["reason"]


def test_nothing_survives_the_supervisors_death_by_sigkill(
    engine: subprocess.Popen[str], mark: str, tmp_path: Path
) -> None:
    below = _below(engine.pid)
    (supervisor,) = psutil.Process(engine.pid).children()
    supervisor.kill()
    out, _ = engine.communicate(timeout=BOUND)
    assert out.strip() == "Failed the supervisor was ended by SIGKILL"
    _, alive = psutil.wait_procs(below, timeout=BOUND)
    assert alive == []
    daemons.until_gone(mark)
    line = _logged(tmp_path, "supervisor exited")
    assert (line["code"], line["level"]) == (-signal.SIGKILL, "warning")


@pytest.mark.parametrize(
    ("processes", "number"),
    [(1, signal.SIGKILL), (8, signal.SIGINT)],
    ids=lambda value: getattr(value, "name", None),
)
def test_nothing_survives_an_end_while_instances_are_starting(
    processes: int, number: signal.Signals, kind: str, tmp_path: Path, mark: str
) -> None:
    """The engine is ended as soon as there are so many processes below it: the supervisor, what keeps the instances,
    and the ranks."""
    source = ENGINE.format(command=STEP.format(mark=mark), workspace=str(tmp_path / "w"), kind=kind)
    with (
        (tmp_path / "errors").open("w") as errors,
        bounded.Popen(
            [sys.executable, "-c", textwrap.dedent(source)], stdout=subprocess.DEVNULL, stderr=errors
        ) as engine,
    ):
        try:
            while len(_below(engine.pid)) < processes:
                assert engine.poll() is None
            below = _below(engine.pid)
            engine.send_signal(number)
            engine.wait(BOUND)
        finally:
            engine.kill()
    if number is signal.SIGKILL:
        psutil.wait_procs(below, timeout=BOUND)  # else the engine itself has waited for them
    assert [process for process in below if _lives(process)] == []
    daemons.until_gone(mark)
    errors = (tmp_path / "errors").read_text()
    assert "allranks/local/instances/agent" not in errors
    assert "allranks/local/supervisor" not in errors


@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        ("before it answers", "rack"),
        ("before the launch", "loopback"),
        ("before its end is known", "rack"),
        ("stopped", "loopback"),
    ],
)
def test_a_launch_fails_whenever_the_supervisor_is_killed(
    moment: str, kind: str, rack_works: bool, tmp_path: Path
) -> None:
    if kind == "rack" and not rack_works:
        pytest.skip("this machine has no user namespaces")

    async def launch() -> list[str]:
        create, events = asyncio.create_subprocess_exec, asyncio.Queue[Event | None]()

        async def killed(*arguments: str, **options: Any) -> asyncio.subprocess.Process:
            process = await create(*arguments, **options)
            process.kill()
            return process

        with mock.patch.object(asyncio, "create_subprocess_exec", killed if moment == "before it answers" else create):
            started = await Supervisor.start(kind)
        if moment == "stopped":
            started._process.send_signal(signal.SIGSTOP)
            with mock.patch.object(supervisor, "CLOSE_SECONDS", 0.1):
                await started.close()
        elif moment != "before it answers":
            started._process.kill()
        if moment == "before the launch":
            await started._pump
        spec = InstanceSpec(0, "127.0.0.1", "here", (("127.0.0.1", "here"),), 1 << 20, str(tmp_path))
        await started.launch("a", spec, [Program("rank 0", ("/bin/true",), {}, "/", os.devnull)], events)
        found = [await asyncio.wait_for(events.get(), BOUND) for _ in range(2)]
        await started.close()
        return [f"{event.kind} {event.reason}".strip() for event in found if event]

    assert asyncio.run(launch()) == ["failed the supervisor was ended by SIGKILL", "gone"]


def test_nothing_survives_ctrl_c(engine: subprocess.Popen[str], mark: str) -> None:
    below = _below(engine.pid)
    engine.send_signal(signal.SIGINT)
    out, _ = engine.communicate(timeout=BOUND)
    assert out.strip() == "Canceled"
    assert psutil.wait_procs(below, timeout=BOUND)[1] == []
    assert daemons.sleepers(mark) == []


def test_what_a_step_leaves_behind_is_gone_when_it_ends(kind: str, mark: str, run_steps) -> None:
    record = run_steps(
        Step("leave", f"setsid sleep {mark} & setsid sh -c 'setsid sleep {mark} &' & sleep 0.1; echo left"),
        Step("look", "ps -eo args", after=("leave",)),
        instances=kind,
    )
    assert record.status is Status.COMPLETED
    assert f"sleep {mark}" not in Path(record.step("look").ranks[0].log).read_text()
    assert daemons.sleepers(mark) == []
