"""A fork server that forks many agents, and the supervisor, leave no process and no descriptor open."""

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

import psutil

from allranks.local.boot import SOURCE
from allranks.local.forkserver import shims
from allranks.local.instances.supervisor import INSTANCE_KINDS, Event, ForkServerSpec, InstanceSpec, Program, Supervisor

STEPS = 12
FIRST = 4
"""Steps after which the number of descriptors does not change any more."""

STAYING = {"loopback": 2, "rack": 3}
"""The fork server and the supervisor; in the rack also a process that waits for the supervisor."""

BOUND = 10


def test_descriptors_and_processes_of_many_steps(kind: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\nprint(sorted(os.listdir('/proc/self/fd'))[:-1])\n", encoding="utf-8")
    first, last = asyncio.run(_run(kind, tmp_path))
    assert first == last
    logs = [log.read_text(encoding="utf-8") for log in tmp_path.glob("log_*")]
    assert logs == ["['0', '1', '2']\n"] * (2 * STEPS)


async def _run(kind: str, folder: Path) -> list[list[int]]:
    """Return the numbers of descriptors of the processes that stay, after the first steps and after the last one."""
    others = _children()  # that other tests share
    supervisor = await Supervisor.start(kind, offline=True)
    counts = []
    try:
        environment = {"PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"])}
        spec = ForkServerSpec(sys.executable, tuple(environment.items()), ("json", "logging"))
        (instance,) = INSTANCE_KINDS[kind].instances([0])
        names = ((instance.address, instance.hostname),)
        temporary = folder / "temporary"  # removed at the end
        temporary.mkdir()
        for step in range(STEPS):
            forks = folder / f"forks-{step}"
            path = os.pathsep.join([shims.write(forks, Path(sys.executable)), environment["PATH"]])
            keep = (str(folder), sys.prefix, SOURCE)
            on = InstanceSpec(
                0, instance.address, instance.hostname, names, 1 << 20, str(temporary), keep, forks=str(forks)
            )
            programs = [
                Program(
                    f"rank {rank}",
                    ("/bin/bash", "-c", "python train.py"),
                    {"PATH": path},
                    str(folder),
                    f"{folder}/log_{step}_{rank}",
                )
                for rank in range(2)
            ]
            events: asyncio.Queue[Event | None] = asyncio.Queue()
            await supervisor.launch(f"agent {step}", on, programs, events, spec)
            while (event := await events.get()) is None or event.kind != "gone":
                assert event is not None
                assert event.kind != "failed", event.reason
            if step + 1 in (FIRST, STEPS):
                counts.append(await _descriptors_of_staying(STAYING[kind], others))
    finally:
        await supervisor.close()
    assert _children() <= others
    return counts


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


async def _descriptors_of_staying(count: int, others: set[psutil.Process]) -> list[int]:
    """Wait until the step's processes have ended, and return the numbers of descriptors of the others."""
    end = time.monotonic() + BOUND
    while True:
        with contextlib.suppress(psutil.NoSuchProcess):
            below = _children() - others
            if len(below) == count:
                await asyncio.sleep(0.5)  # until the supervisor has closed what it had of the agent
                return sorted(process.num_fds() for process in below)
        assert time.monotonic() < end, [(process.pid, process.ppid(), process.cmdline()[-3:]) for process in below]
        await asyncio.sleep(0)
