"""Inject the faults of a run into the attempts of its steps."""

import asyncio
import contextlib
import logging
import math
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.contract import report
from allranks.history.recorder import RunRecorder
from allranks.history.records import RankRecord, RunRecord, Status, StepRecord, Verdict
from allranks.local.instances.supervisor import InstanceSpec, Supervisor
from allranks.local.launchers.launching import LAUNCHER_FOLDER
from allranks.local.stack_dumps import pids_of, signal_all
from allranks.text import rank_list
from allranks_lab.faults import effects, in_rank, rack, targets
from allranks_lab.faults.faults import KINDS, NEVER, OPTION, Fault
from allranks_lab.faults.targets import is_at

_log = logging.getLogger(__name__)

_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "evict": signal.SIGTERM}
_FOR_THE_ENGINE = (LAUNCHER_FOLDER, "reports", "user_logs")

POLL = 0.01
"""Seconds between two checks of the training steps and the time."""

OTHERS = 2.0
"""Seconds for the other instances to end by themselves after an eviction."""

LATEST = 1.0
"""Seconds after which a rank that does not report its training steps is assumed to have reached those of another."""


class Injector:
    """The faults of one run. Each happens once, even if the run is resumed.

    run:     its record, with the faults that an earlier execution has injected
    records: whether the ranks record their training steps
    """

    def __init__(
        self, faults: Sequence[Fault], run: RunRecord, recorder: RunRecorder, supervisor: Supervisor, *, records: bool
    ) -> None:
        done = Counter(fault.fault for fault in run.faults)
        self.pending: list[Fault] = []
        for fault in faults:
            if done[str(fault)]:
                done[str(fault)] -= 1
            else:
                self.pending.append(fault)
        # It also finds the steps of scripts that do not report them.
        self._records = records or any(fault.step is not None for fault in self.pending)
        self.recorder = recorder
        self.supervisor = supervisor
        self.started: dict[str, float] = {}
        self.evicted: dict[str, list[tuple[Fault, float]]] = {}
        """By step: its evictions, and the time at which the instance is back, of time.monotonic(), or NEVER."""
        self.without: dict[str, int] = {}
        """By step: the number of instances that its latest attempt lacks, because it is elastic."""
        self._interrupted: set[str] = set()

    @contextlib.asynccontextmanager
    async def during(
        self, record: StepRecord, agents: Mapping[str, int], reports: Mapping[int, Path]
    ) -> AsyncIterator[Callable[[], bool]]:
        """Inject the faults of a step while the block starts and monitors an attempt. The attempt fails if an instance
        was evicted. The ranks of an elastic step also end when an instance is back. Yield a function that returns
        whether an evicted instance has its grace period.

        agents:  the name of each instance's agent, and the number of the instance within the run
        reports: the report file of each rank
        """
        attempt = _AttemptFaults(self, record, agents, reports)
        task = asyncio.create_task(attempt.run())
        try:
            yield lambda: time.monotonic() < attempt.grace_ends
        finally:
            await attempt.close(task)
        if attempt.lost or attempt.grows:
            self._interrupted.add(record.name)
        for fault in attempt.lost:
            self.evicted.setdefault(record.name, []).append((fault, time.monotonic() + fault.back))
        if attempt.lost and record.status in (Status.COMPLETED, Status.FAILED):
            names = ", ".join(f"instance {fault.instance}" for fault in attempt.lost)
            never = " and does not come back" if any(fault.back == NEVER for fault in attempt.lost) else ""
            # The judge may name a rank that ended because of the eviction.
            said = (record.verdict.reason,) if record.verdict is not None else ()
            record.verdict = Verdict(record.name, f"{names} was evicted{never}", consequences=said)
            record.status = Status.FAILED

    def variables(self, record: StepRecord, instance: int) -> dict[str, str]:
        """Return variables that the ranks on an instance of a step need for their faults."""
        variables = {report.IN_RANK: in_rank.__file__}
        if self._records:
            variables[in_rank.RECORDER] = str(Path(record.folder) / "reports" / str(record.attempt))
        for fault in [each for each in self.pending if is_at(each, record.name)]:
            if fault.kind == "hang":
                variables[in_rank.MAY_HANG] = "1"
            elif fault.kind == "clock-skew" and fault.instance == instance:
                library = str(targets.faketime())
                variables |= {"LD_PRELOAD": library, "FAKETIME": f"+{fault.time:g}", "DONT_FAKE_MONOTONIC": "1"}
                self._begin(fault, record, f"the clock of instance {instance} is {fault.time:g} s ahead")
        return variables

    def delayed(self, record: StepRecord, specs: Sequence[InstanceSpec]) -> list[InstanceSpec]:
        """Return the instances of an attempt, some of which start their programs later."""
        delayed = list(specs)
        for fault in list(self.pending):
            number = fault.instance or 0
            if fault.kind == "slow-start" and is_at(fault, record.name) and number < len(specs):
                delayed[number] = replace(specs[number], delay=fault.time)
                self._begin(fault, record, f"instance {number} starts {fault.time:g} s later")
        return delayed

    def _begin(self, fault: Fault, record: StepRecord, effect: str) -> None:
        self.pending.remove(fault)
        self.recorder.injected(record, str(fault), effect)

    def away(self, record: StepRecord) -> int:
        """Return the number of a step's instances that were evicted and are not back."""
        return sum(time.monotonic() < back for _, back in self.evicted.get(record.name, ()))

    async def next_instances(
        self, record: StepRecord, is_ending: Callable[[], bool], count: int, minimum: int
    ) -> int | None:
        """Wait until evicted instances are back, and return the number of instances on which the platform restarts the
        step; None if it does not. count, minimum: the number of instances of the step, and the least it needs"""
        if record.status is not Status.FAILED or record.name not in self._interrupted:
            return None
        self._interrupted.discard(record.name)
        left = count - sum(back == NEVER for _, back in self.evicted[record.name])
        if left < minimum:
            if record.verdict is not None:
                reason = f"{record.verdict.reason}: {left} of {count} instances remain, and the step needs {minimum}"
                record.verdict = replace(record.verdict, reason=reason)
                self.recorder.changed(record)
            return None
        while (away := self.away(record)) > count - minimum and not is_ending():
            await asyncio.sleep(POLL)
        if is_ending():
            return None
        self.without[record.name] = away
        on = f" on {count - away} of {count} instances" if away else ""
        self.recorder.note(record, f"evicted: it starts again{on}, with its outputs in place")
        return count - away

    def close(self) -> None:
        """Note the faults that did not happen."""
        for fault in self.pending:
            moment = f"training step {fault.step}" if fault.step is not None else f"{fault.after:g} s"
            self.recorder.note(None, f"{OPTION} {fault} did not happen: no step that ran reached {moment}")


class _AttemptFaults:
    """The faults of one attempt.

    lost:  the faults that have evicted an instance
    grows: whether the ranks end because an instance is back
    """

    def __init__(
        self, injector: Injector, record: StepRecord, agents: Mapping[str, int], reports: Mapping[int, Path]
    ) -> None:
        self._injector = injector
        self._record = record
        self._agents, self._indexes = list(agents), list(agents.values())
        self._reports = reports
        self._offsets = dict.fromkeys(reports, 0)
        self._reached: dict[int, int] = {}
        self._reached_since: dict[int, float] = {}
        self._effects: list[asyncio.Task[None]] = []
        self._links: Sequence[Fault] = ()
        self.lost: list[Fault] = []
        self.grace_ends = 0.0
        self.grows = False
        self._held: set[tuple[int, int | None]] = set()
        self._hanging: set[tuple[int, int | None]] = set()
        self._steps = {fault.step for fault in self._pending() if fault.step is not None}
        if self._steps:
            effects.hold(reports.values(), self._steps)

    async def run(self) -> None:
        """Inject each fault when it is due."""
        started = self._injector.started
        without = self._injector.without.get(self._record.name, 0)
        while (pending := self._pending()) or without:
            await asyncio.sleep(POLL)
            if self._record.name not in started and any(rank.started for rank in self._record.ranks):
                started[self._record.name] = time.monotonic()
            self._read_steps()
            for fault in pending:
                if self._is_due(fault):
                    await self._inject(fault)
            self._release()
            is_whole = all(rank.status is Status.RUNNING for rank in self._record.ranks)
            if without > self._injector.away(self._record) and is_whole and not (self.grows or self.lost):
                self._grow()

    async def close(self, task: asyncio.Task[None]) -> None:
        """Stop, and undo the effects that outlive the processes of the attempt."""
        for fault in list(self._links):
            await self._lift(fault)
        for each in (task, *self._effects):
            each.cancel()
        for result in await asyncio.gather(task, *self._effects, return_exceptions=True):
            if isinstance(result, Exception):
                _log.error("fault injection failed", exc_info=result)
                self._injector.recorder.note(self._record, f"a fault was not injected: {result}")

    def _pending(self) -> list[Fault]:
        """Return the faults that may still happen in this attempt."""
        ranks, instances = len(self._record.ranks), len(self._agents)
        return [
            fault
            for fault in self._injector.pending
            if KINDS[fault.kind].timed
            and is_at(fault, self._record.name)
            and (fault.rank or 0) < ranks
            and (fault.instance or 0) < instances
        ]

    def _ranks_of(self, fault: Fault) -> list[RankRecord]:
        return [
            rank
            for rank in self._record.ranks
            if fault.rank in (None, rank.rank) and fault.instance in (None, rank.instance_rank)
        ]

    def _read_steps(self) -> None:
        for rank, path in self._reports.items():
            events, self._offsets[rank] = report.read(path, self._offsets[rank])
            for event in events:
                if isinstance(event, report.Reached):
                    self._held.add((rank, event.step))
                if isinstance(event, (report.Progress, report.Reached)):
                    self._reached[rank] = max(event.step, self._reached.get(rank, 0))

    def _is_due(self, fault: Fault) -> bool:
        ranks, now = self._ranks_of(fault), time.monotonic()
        if not any(rank.status is Status.RUNNING for rank in ranks):
            return False
        if fault.step is None:
            started = self._injector.started.get(self._record.name)
            return started is not None and now >= started + fault.after
        if not any(step >= fault.step for step in self._reached.values()):
            return False
        since = self._reached_since.setdefault(fault.step, now)
        return now > since + LATEST or all(self._reached.get(rank.rank, -1) >= fault.step for rank in ranks)

    async def _inject(self, fault: Fault) -> None:
        self._injector.pending.remove(fault)
        ranks, kind = self._ranks_of(fault), fault.kind
        name = rank_list([rank.rank for rank in ranks])
        if len({rank.instance_rank for rank in ranks}) == 1:
            name += f" on instance {ranks[0].instance_rank} ({ranks[0].hostname})"
        _log.info("fault injected", extra={"node": self._record.name, "fault": str(fault)})
        if number := _SIGNALS.get(kind):
            self._note(fault, f"{number.name} sent to {name}")
            signal_all(pids_of(ranks), number)
        elif kind == "hang":
            held = {(rank.rank, fault.step) for rank in ranks} & self._held
            self._hanging |= held
            self._note(fault, f"{'no progress any more of' if held else effects.hang(ranks)} {name}")
        elif kind == "slow-rank":
            self._note(fault, f"{name} runs 1/{fault.factor:g} of the time")
            self._start(effects.slow_down(ranks, fault.factor, fault.lasts))
        elif kind == "oom":
            self._note(fault, f"allocations of memory fail in {name}")
            effects.limit_memory(ranks)
        elif kind == "disk-full":
            self._note(fault, f"nothing more can be written to the step's folders by {name}")
            await self._fill_disk(fault)
        else:
            what = {"cut": "", "delay": f" {fault.time:g} s", "loss": f" {fault.share:.0%}"}
            self._note(fault, f"{kind}{what.get(kind, f' {fault.limit:g} bit/s')} on the network of {name}")
            await self._change_links(fault, [*self._links, fault])
        if kind == "evict":
            self.lost.append(fault)
            self.grace_ends = time.monotonic() + fault.grace + OTHERS
            self._start(self._evict(fault))
        elif fault.lasts != NEVER and (kind == "stop" or fault in self._links):
            self._start(self._lift(fault, ranks))

    def _note(self, fault: Fault, effect: str) -> None:
        self._injector.recorder.injected(self._record, str(fault), effect)

    def _start(self, effect: Coroutine[Any, Any, None]) -> None:
        self._effects.append(asyncio.create_task(effect))

    async def _lift(self, fault: Fault, ranks: Sequence[RankRecord] = ()) -> None:
        """End a fault after its time, or with the attempt."""
        await asyncio.sleep(fault.lasts if ranks else 0)
        if fault.kind == "stop":
            signal_all(pids_of(ranks), signal.SIGCONT)
        else:
            await self._change_links(fault, [each for each in self._links if each is not fault])

    async def _change_links(self, changed: Fault, faults: Sequence[Fault]) -> None:
        """Apply faults to the links of the instances that a fault affects."""
        self._links = faults
        for number, (agent, index) in enumerate(zip(self._agents, self._indexes, strict=True)):
            if changed.instance in (None, number):
                own = [fault for fault in faults if fault.instance in (None, number)]
                delay = sum(fault.time for fault in own if fault.kind == "delay")
                passed = math.prod(1 - (1 if fault.kind == "cut" else fault.share) for fault in own)
                rate = min((fault.limit for fault in own if fault.limit), default=0.0)
                supervisor = self._injector.supervisor
                await supervisor.inject(
                    rack.__file__, agent, index, kind="link", delay=delay, loss=1 - passed, rate=rate
                )

    async def _fill_disk(self, fault: Fault) -> None:
        assert fault.instance is not None
        folders = [
            entry.path
            for entry in os.scandir(self._record.folder)
            if entry.is_dir(follow_symlinks=False) and entry.name not in _FOR_THE_ENGINE
        ]
        agent, index = self._agents[fault.instance], self._indexes[fault.instance]
        await self._injector.supervisor.inject(rack.__file__, agent, index, kind="disk-full", folders=folders)

    def _grow(self) -> None:
        """End the ranks, after a grace period for their checkpoints, so that the next attempt has more of them."""
        self.grows = True
        self._injector.recorder.note(self._record, "an instance is back: SIGTERM sent to all ranks")
        signal_all(pids_of(self._record.ranks), signal.SIGTERM)
        self._start(self._end(range(len(self._agents)), Fault.grace))

    async def _end(self, instances: Collection[int], grace: float) -> None:
        """End instances after the grace period, or when their ranks have ended."""
        end = time.monotonic() + grace

        def running() -> set[int]:
            ranks = {rank.instance_rank for rank in self._record.ranks if not rank.status.ended}
            return ranks & set(instances)

        while time.monotonic() < end and running():
            await asyncio.sleep(POLL)
        # Not where all ranks have ended: the next attempt may have the same agent.
        for instance in running():
            await self._injector.supervisor.signal(self._agents[instance], signal.SIGKILL)

    async def _evict(self, fault: Fault) -> None:
        """End the instance after the grace period, or when its ranks have ended. Then end the others."""
        assert fault.instance is not None
        await self._end([fault.instance], fault.grace)
        await asyncio.sleep(OTHERS)
        await self._end(range(len(self._agents)), 0)

    def _release(self) -> None:
        """Let the ranks continue after the training steps whose faults have been injected."""
        waiting = {
            fault.step for fault in self._pending() if not all(rank.status.ended for rank in self._ranks_of(fault))
        }
        for step in self._steps - waiting:
            self._steps.discard(step)
            for rank, path in self._reports.items():
                effects.release(path, step, in_rank.HANG if (rank, step) in self._hanging else "")
