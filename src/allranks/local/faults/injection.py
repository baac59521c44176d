"""Inject the faults of a run into the attempts of its steps."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.contract import fault_points, report
from allranks.local.faults.effects import signal_ranks
from allranks.local.faults.faults import NEVER, OPTION, Fault
from allranks.local.faults.targets import is_at
from allranks.local.instances.supervisor import Supervisor
from allranks.runs.formatting import rank_list
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import RankRecord, RunRecord, Status, StepRecord, Verdict

_log = logging.getLogger(__name__)

POLL = 0.01
"""Seconds between two looks at the training steps and the time."""

OTHERS = 2.0
"""Seconds that the other instances have to end by themselves after an eviction."""

LATEST = 1.0
"""Seconds after which a rank that does not report its training steps counts as having reached that of another one."""


class Injector:
    """The faults of one run. Each happens once, also if the run is resumed.

    run: its record, with the faults that an earlier execution has injected
    """

    def __init__(self, faults: Sequence[Fault], run: RunRecord, recorder: RunRecorder, supervisor: Supervisor) -> None:
        done = Counter(fault.fault for fault in run.faults)
        self.pending: list[Fault] = []
        for fault in faults:
            if done[str(fault)]:
                done[str(fault)] -= 1
            else:
                self.pending.append(fault)
        self.recorder = recorder
        self.supervisor = supervisor
        self.started: dict[str, float] = {}
        self.evicted: dict[str, list[tuple[Fault, float]]] = {}
        """By step: its evictions, and when the instance is back, as time.monotonic() or NEVER."""
        self.without: dict[str, int] = {}
        """By step: how many of its instances its latest attempt does without, because it is elastic."""
        self._interrupted: set[str] = set()

    @contextlib.asynccontextmanager
    async def during(
        self, record: StepRecord, agents: Sequence[str], reports: Mapping[int, Path]
    ) -> AsyncIterator[None]:
        """Inject the faults of a step while the block starts and monitors an attempt. The attempt fails if an instance
        was evicted. The ranks of an elastic step end too when an instance is back.

        agents:  by instance, the name of the agent
        reports: by rank, its report file
        """
        attempt = _AttemptFaults(self, record, agents, reports)
        task = asyncio.create_task(attempt.run())
        try:
            yield
        finally:
            await attempt.close(task)
        if attempt.lost or attempt.grows:
            self._interrupted.add(record.name)
        for fault in attempt.lost:
            self.evicted.setdefault(record.name, []).append((fault, time.monotonic() + fault.back))
        if attempt.lost and record.status in (Status.COMPLETED, Status.FAILED):
            names = ", ".join(f"instance {fault.instance}" for fault in attempt.lost)
            never = " and does not come back" if any(fault.back == NEVER for fault in attempt.lost) else ""
            said = (record.verdict.reason,) if record.verdict is not None else ()
            if never or record.verdict is None:
                record.verdict = Verdict(record.name, f"{names} was evicted{never}", consequences=said)
            record.status = Status.FAILED

    def away(self, record: StepRecord) -> int:
        """Return how many instances of a step were evicted and are not back."""
        return sum(time.monotonic() < back for _, back in self.evicted.get(record.name, ()))

    async def starts_again(self, record: StepRecord, is_ending: Callable[[], bool], count: int, minimum: int) -> bool:
        """Return whether the platform starts a step again, after waiting until at most `without` instances are away.

        count, minimum: the step's number of instances, and the least on which it continues
        """
        if record.status is not Status.FAILED or record.name not in self._interrupted:
            return False
        self._interrupted.discard(record.name)
        left = count - sum(back == NEVER for _, back in self.evicted[record.name])
        if left < minimum:
            if record.verdict is not None:
                reason = f"{record.verdict.reason}: {left} of {count} instances remain, and the step needs {minimum}"
                record.verdict = replace(record.verdict, reason=reason)
                self.recorder.changed(record)
            return False
        while (away := self.away(record)) > count - minimum and not is_ending():
            await asyncio.sleep(POLL)
        if is_ending():
            return False
        self.without[record.name] = away
        on = f" on {count - away} of {count} instances" if away else ""
        self.recorder.note(record, f"evicted: it starts again{on}, with its outputs in place")
        return True

    def close(self) -> None:
        """Note the faults that did not happen."""
        for fault in self.pending:
            moment = f"training step {fault.step}" if fault.step is not None else f"{fault.after:g} s"
            self.recorder.note(None, f"{OPTION} {fault} did not happen: no step with its ranks has reached {moment}")


class _AttemptFaults:
    """The faults of one attempt.

    lost:  those that have evicted an instance
    grows: whether the ranks end because an instance is back
    """

    def __init__(
        self, injector: Injector, record: StepRecord, agents: Sequence[str], reports: Mapping[int, Path]
    ) -> None:
        self._injector = injector
        self._record = record
        self._agents = agents
        self._reports = reports
        self._offsets = dict.fromkeys(reports, 0)
        self._reached: dict[int, int] = {}
        self._reached_since: dict[int, float] = {}
        self._effects: list[asyncio.Task[None]] = []
        self.lost: list[Fault] = []
        self.grows = False
        self._steps = {fault.step for fault in self._pending() if fault.step is not None}
        if self._steps:
            fault_points.hold(reports.values(), self._steps)

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
                    self._inject(fault)
            self._release()
            is_whole = all(rank.status is Status.RUNNING for rank in self._record.ranks)
            if without > self._injector.away(self._record) and is_whole and not (self.grows or self.lost):
                self._grow()

    async def close(self, task: asyncio.Task[None]) -> None:
        """Stop, and undo what outlives the processes of the attempt."""
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
            if is_at(fault, self._record.name) and (fault.rank or 0) < ranks and (fault.instance or 0) < instances
        ]

    def _targets(self, fault: Fault) -> list[RankRecord]:
        return [
            rank
            for rank in self._record.ranks
            if fault.rank in (None, rank.rank) and fault.instance in (None, rank.instance_rank)
        ]

    def _read_steps(self) -> None:
        for rank, path in self._reports.items():
            events, self._offsets[rank] = report.read(path, self._offsets[rank])
            for event in events:
                if isinstance(event, (report.Progress, report.Reached)):
                    self._reached[rank] = max(event.step, self._reached.get(rank, 0))

    def _is_due(self, fault: Fault) -> bool:
        targets, now = self._targets(fault), time.monotonic()
        if not any(rank.status is Status.RUNNING for rank in targets):
            return False
        if fault.step is None:
            started = self._injector.started.get(self._record.name)
            return started is not None and now >= started + fault.after
        if not any(step >= fault.step for step in self._reached.values()):
            return False
        since = self._reached_since.setdefault(fault.step, now)
        return now > since + LATEST or all(self._reached.get(rank.rank, -1) >= fault.step for rank in targets)

    def _inject(self, fault: Fault) -> None:
        self._injector.pending.remove(fault)
        targets = self._targets(fault)
        name = rank_list([rank.rank for rank in targets])
        if fault.instance is None:
            name += f" on instance {targets[0].instance_rank}"
        else:
            name = f"{name} of instance {fault.instance} ({targets[0].hostname})"
        _log.info("fault injected", extra={"node": self._record.name, "fault": str(fault)})
        if fault.kind == "kill":
            self._record_effect(fault, f"SIGKILL sent to {name}")
            signal_ranks(targets, signal.SIGKILL)
        elif fault.kind == "stop":
            self._record_effect(fault, f"SIGSTOP sent to {name}")
            signal_ranks(targets, signal.SIGSTOP)
            if fault.lasts != NEVER:
                self._start(self._continue(fault.lasts, targets))
        elif fault.kind == "evict":
            self._record_effect(fault, f"instance {fault.instance} is evicted: SIGTERM sent to {name}")
            self.lost.append(fault)
            signal_ranks(targets, signal.SIGTERM)
            self._start(self._evict(fault, targets))

    def _record_effect(self, fault: Fault, effect: str) -> None:
        self._injector.recorder.injected(self._record, str(fault), effect)

    def _start(self, effect: Coroutine[Any, Any, None]) -> None:
        self._effects.append(asyncio.create_task(effect))

    async def _continue(self, seconds: float, ranks: Sequence[RankRecord]) -> None:
        await asyncio.sleep(seconds)
        signal_ranks(ranks, signal.SIGCONT)

    def _grow(self) -> None:
        """End the ranks, after a grace period for their checkpoints, so that the next attempt has more of them."""
        self.grows = True
        self._injector.recorder.note(self._record, "an instance is back: SIGTERM sent to all ranks")
        signal_ranks(self._record.ranks, signal.SIGTERM)
        self._start(self._end(self._agents, self._record.ranks, Fault.grace))

    async def _end(self, agents: Sequence[str], ranks: Sequence[RankRecord], grace: float) -> None:
        """End instances after the grace period, or when their ranks have ended."""
        end = time.monotonic() + grace
        while time.monotonic() < end and not all(rank.status.ended for rank in ranks):
            await asyncio.sleep(POLL)
        for agent in agents:
            await self._injector.supervisor.signal(agent, signal.SIGKILL)

    async def _evict(self, fault: Fault, ranks: Sequence[RankRecord]) -> None:
        """End the instance after the grace period, or when its ranks have ended. Then end the others."""
        assert fault.instance is not None
        await self._end([self._agents[fault.instance]], ranks, fault.grace)
        await asyncio.sleep(OTHERS)
        await self._end(self._agents, (), 0)

    def _release(self) -> None:
        """Let the ranks continue after the training steps whose faults have been injected."""
        waiting = {fault.step for fault in self._pending()}
        for step in self._steps - waiting:
            self._steps.discard(step)
            for path in self._reports.values():
                fault_points.release(path, step)
