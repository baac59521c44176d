"""The cost of sampling resource usage: CPU time of the agent of one instance with 8 ranks of 4 processes each.

Every rank has 50 MB of memory, and three forked processes that share it, as data loader workers do. They sleep. The
agent samples once per second, as in the first minutes of a step; later it samples less often. Its CPU time is that of
its main thread, which the kernel counts in nanoseconds; without ranks to sample it uses none. The engine's part is
what it does with a sample: parse the event, record it, store it, and check it for notes.

Peer: psutil, which reads the same of the same processes once (`children(recursive=True)`, `cpu_times()`,
`memory_info()`), once per second.

SAMPLING_SECONDS=10 sets another duration.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from bench.figures import Figure, finish

from allranks.history.observer import Observer
from allranks.history.recorder import RunRecorder
from allranks.history.records import RankRecord, RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.local.attempt.usage_watch import UsageWatch
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.local.instances.programs import Program
from allranks.local.instances.supervisor import Event, InstanceSpec, Supervisor, UnfitError

RANKS, PROCESSES = 8, 4
SECONDS = float(os.environ.get("SAMPLING_SECONDS", 30))
SETTLED = 3.0
"""Seconds after which all processes have started and been found."""

GOAL = 0.5
"""Percent of a core, for an instance."""

EVENTS = 1000

RANK = f"""
import os, time
memory = bytearray(50 << 20)
for _ in range({PROCESSES - 1}):
    if not os.fork():
        break
time.sleep(10_000)
"""


def main() -> None:
    figures = []
    engine = _engine_seconds()
    for kind in INSTANCE_KINDS:
        try:
            agent, peer = asyncio.run(_agent_and_peer(kind))
        except UnfitError as error:
            print(f"no {kind}: {error}", file=sys.stderr)
            continue
        total = 100 * (agent + engine)
        name = f"{RANKS} ranks of {PROCESSES} processes on {kind}, % of a core"
        figures.append(Figure(f"agent and engine, {name} (peer: psutil)", total, 100 * peer, GOAL))
        figures.append(Figure(f"agent, {name}", 100 * agent))
    figures.append(Figure(f"engine, a sample of {RANKS} ranks, ms", 1000 * engine))
    finish("The cost of sampling resource usage", figures)


async def _agent_and_peer(kind: str) -> tuple[float, float]:
    """Return the CPU seconds per second of the agent, and of psutil. Raise UnfitError if the kind does not work."""
    supervisor = await Supervisor.start(kind)
    try:
        with tempfile.TemporaryDirectory() as folder:
            (instance,) = INSTANCE_KINDS[kind].instances([0])
            hosts = ((instance.address, instance.hostname),)
            spec = InstanceSpec(0, instance.address, instance.hostname, hosts, 1 << 20, folder)
            program = (sys.executable, "-I", "-S", "-c", RANK)
            programs = [Program(f"rank {rank}", program, {}, "/", "/dev/null") for rank in range(RANKS)]
            events: asyncio.Queue[Event | None] = asyncio.Queue()
            await supervisor.launch("sampling/0/0", spec, programs, events)
            await asyncio.sleep(SETTLED)
            agent = _agent()
            before, began = _cpu_seconds(agent), time.monotonic()
            peer = await asyncio.to_thread(_peer, agent)
            used = (_cpu_seconds(agent) - before) / (time.monotonic() - began)
            samples = [event for event in _drained(events) if event.kind == "usage"]
            assert len(samples) > SECONDS / 2, "the agent has left out samples"
            assert all(len(sample.ranks) == RANKS for sample in samples)
            return used, peer
    finally:
        await supervisor.close()


def _agent() -> psutil.Process:
    """Return the process of the agent: the parent of the ranks."""
    below = psutil.Process().children(recursive=True)
    parents = [process.ppid() for process in below if RANK in process.cmdline()]
    ranks = {process.pid for process in below if RANK in process.cmdline()}
    (agent,) = {parent for parent in parents if parent not in ranks}
    return psutil.Process(agent)


def _cpu_seconds(process: psutil.Process) -> float:
    return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9


def _peer(agent: psutil.Process) -> float:
    """Read the ranks' processes with psutil once per second. Return its CPU seconds per second."""
    began, used = time.monotonic(), 0.0
    while (now := time.monotonic()) < began + SECONDS:
        before = time.thread_time()
        for process in agent.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                process.cpu_times()
                process.memory_info()
        used += time.thread_time() - before
        time.sleep(max(now + 1 - time.monotonic(), 0))
    return used / (time.monotonic() - began)


def _drained(events: asyncio.Queue[Event | None]) -> Iterator[Event]:
    while not events.empty():
        event = events.get_nowait()
        if event is not None:
            yield event


def _engine_seconds() -> float:
    """Return the CPU seconds that the engine needs for one sample."""
    ranks = {f"rank {rank}": [0.0, 10**9] for rank in range(RANKS)}
    message = {"event": "usage", "agent": "train/0/0", "ranks": ranks, "network": [10**9, 10**9], "time": 0.0}
    step = StepRecord("train", "", "", "pytorch", 1, RANKS, status=Status.RUNNING)
    step.ranks = [RankRecord(rank, 0, rank, "host", Status.RUNNING, started=0.0) for rank in range(RANKS)]
    run = RunRecord("r", "p", "p", "", "rack", steps=[step])
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.db") as store:
        store.add_run(run, "{}")
        watch = UsageWatch(step, RunRecorder(run, store, Observer()), list(ranks))
        before = time.thread_time()
        for number in range(EVENTS):
            for values in ranks.values():
                values[0] += 1.0
            event = json.loads(json.dumps(message | {"time": float(number)}))
            watch.sampled(Event("usage", event["agent"], event["time"], ranks=event["ranks"], network=event["network"]))
        return (time.thread_time() - before) / EVENTS


if __name__ == "__main__":
    main()
