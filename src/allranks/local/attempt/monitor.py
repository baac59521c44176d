"""Monitor the ranks of one attempt until its last process has ended, and determine its status and verdict."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.contract import report
from allranks.history.log_reader import tail
from allranks.history.recorder import RunRecorder
from allranks.history.records import Point, Progress, RankRecord, Status, StepRecord, Verdict
from allranks.local import capacity, flight_recordings
from allranks.local.attempt.stall import RAISED, StallWatch
from allranks.local.attempt.start import Start
from allranks.local.attempt.usage_watch import UsageWatch
from allranks.local.instances.supervisor import Event, Supervisor
from allranks.local.launchers.launching import rank_name, read_events
from allranks.local.options import Options
from allranks.local.stack_dumps import pids_of, signal_all
from allranks.plan.graph import Step
from allranks.text import rank_list
from allranks.verdict import judge, signatures, stragglers
from allranks.verdict.collectives import Call, Recording
from allranks.verdict.folder import of_waiting
from allranks.verdict.hangs import of_hang, of_time_out, with_mismatch
from allranks.verdict.rank_stack import Stack
from allranks.verdict.signatures import NOT_STARTED

_log = logging.getLogger(__name__)

POLL = 0.2
"""Seconds between two polls of rank 0's report."""

SETTLE = 2.0
"""Seconds that the other ranks have to end by themselves after one has failed."""

DISMISSAL = 5.0
"""Seconds from SIGTERM to SIGKILL for processes without remaining work: servers of a finished step."""

GRACE = 30.0
"""Seconds from SIGTERM to SIGKILL: Azure ML's grace period at an eviction."""


@dataclass(eq=False)
class AttemptMonitor:
    """The monitor of one attempt.

    agents:   one for each instance: its name, and the instance's, for messages
    start:    what was started
    reports:  the report file of each rank
    held:     whether a rank may be stopped in a debugger, so that none is late
    evicting: returns whether an evicted instance has its grace period, in which the failure of a rank ends no others
    stopping: returns whether the run is being stopped. A rank that a signal ends then has not failed
    """

    step: Step
    record: StepRecord
    agents: Mapping[str, str]
    events: asyncio.Queue[Event | None]
    start: Start
    reports: Mapping[int, Path]
    options: Options
    recorder: RunRecorder
    supervisor: Supervisor
    held: bool
    evicting: Callable[[], bool]
    stopping: Callable[[], bool]

    def __post_init__(self) -> None:
        self._launching = self.start.launching
        self._timeout = None if self.held else self.step.timeout
        self._ranks = {rank_name(rank.rank): rank for rank in self.record.ranks}
        self._live_agents = set(self.agents)
        self._starting = set(self.agents)
        self._idle = {
            agent for agent, programs in zip(self.agents, self._launching.programs, strict=False) if not programs
        }
        self._start_due: float | None = None
        self._late = False
        self._running: dict[str, set[str]] = {agent: set() for agent in self.agents}
        self._working = set(self._launching.decisive)
        self._usage = UsageWatch(self.record, self.recorder, self.step.instance_type)
        self._launcher_offset = 0
        self._changed = False
        self._pids: dict[int, int | None] = {}
        self._failed: float | None = None
        self._overdue: float | None = None
        self._done: float | None = None
        self._dismissed: float | None = None
        self._stopped = self._terminated = self._killed = False
        self._forgiven = self._orphaned = False
        self._broken = self._launcher_failure = ""
        self._raised: dict[int, float] = {}
        self._arrivals: list[Recording] = []
        self._offsets = dict.fromkeys(self.reports, 0)
        self._memory_kills = capacity.memory_kills()
        self._stall = StallWatch(self.record, self.reports, self.options.stall)
        self._stalled: Verdict | None = None
        self._stacks: Sequence[Stack] | None = None

    async def until_gone(self) -> None:
        """Wait until all processes of the attempt have ended. Then set the status of its record and, if it failed, the
        verdict."""
        loop = asyncio.get_running_loop()
        clock = loop.time
        started = clock()
        while self._live_agents:
            # A timeout for the queue would create a task for every event.
            tick = loop.call_later(POLL, self.events.put_nowait, None)
            try:
                event = await self.events.get()
            finally:
                tick.cancel()
            if event is not None:
                self._handle_event(event, clock())
            else:
                self._read_reports(clock())
                self._read_launcher_events(clock())
                await self._look_for_stall(clock())
                self._require_start(clock())
                if self._changed:
                    self._changed = False
                    self.recorder.save(self.record)
            if self._timeout is not None and self._overdue is None and clock() > started + self._timeout:
                self._overdue = clock()
                self._stacks = await self._stall.stacks()
                await self._terminate()
            if not self._stopped and self.stopping():
                self._stopped = True
                await self._terminate()
            if self._failed is not None and self._stacks is None:
                first = judge.of_ranks(self.record.name, self.record.ranks, self.reports)
                follows = first is not None and signatures.depth(first.reason)
                self._stacks = await self._stall.stacks() if follows else ()
            if self._is_to_dismiss(clock()):
                self._dismissed = clock()
                await self._signal(signal.SIGTERM)
            if not self._killed and self._must_kill(clock()):
                self._killed = True
                await self._signal(signal.SIGKILL)
        self._stall.close()
        self._read_reports(clock())
        self._judge(await asyncio.to_thread(flight_recordings.read, self.reports))
        flight_recordings.remove(self.reports)

    async def _look_for_stall(self, now: float) -> None:
        """Fail the step if its ranks make no progress. End the ranks that have raised and do not end."""
        if self._failed or self._overdue or self.stopping() or self._killed or self.held:
            return
        for rank in await self._stall.exiting(now):
            self._raised.setdefault(rank, now - RAISED)
        self._stalled = await self._stall.verdict(now, self.recorder)

    def _require_start(self, now: float) -> None:
        """End the attempt if an instance has not started its processes in time, also while the run is being stopped."""
        if not self._starting or self._start_due is None or now <= self._start_due or self._late:
            return
        self._late = True
        if not self._killed and not self.stopping():
            seconds = f"{self.options.start_timeout:g} s"
            self._broken = self._broken or f"{self._names(self._starting)} {NOT_STARTED} within {seconds}"

    def _names(self, agents: set[str]) -> str:
        return ", ".join(name for agent, name in self.agents.items() if agent in agents)

    def _is_to_dismiss(self, now: float) -> bool:
        # A launcher that the engine has killed has not finished: what it leaves behind are no servers.
        is_over = self._done is not None and now >= self._done + self._launching.linger
        return is_over and self._dismissed is None and not self._killed

    def _must_kill(self, now: float) -> bool:
        # Only for ranks that still run: after a rank has failed, mpirun sleeps for the grace period in any case.
        has_grace = self.evicting() and not all(rank.status.ended for rank in self.record.ranks)
        return (
            bool(self._broken)
            or (self._terminated and not pids_of(self.record.ranks))
            or self._stalled is not None
            or self._late
            or (self._failed is not None and now > self._failed + SETTLE and not has_grace)
            or (not self.held and any(now > raised + RAISED for raised in self._raised.values()))
            or (self._overdue is not None and now > self._overdue + GRACE)
            or (self._dismissed is not None and now > self._dismissed + (SETTLE if self._orphaned else DISMISSAL))
        )

    async def _terminate(self) -> None:
        """Send SIGTERM to the ranks: to those of mpirun directly, which would pass it on after its own grace period."""
        if self._launching.events_file is not None and (pids := pids_of(self.record.ranks)):
            self._terminated = True
            signal_all(pids, signal.SIGTERM)
        else:
            await self._signal(signal.SIGTERM)

    async def _signal(self, number: int) -> None:
        # An agent whose programs have ended ends by itself.
        agents = [
            agent for agent in self._live_agents if not self._done or self._running[agent] or agent in self._starting
        ]
        if agents:
            extra = {"node": self.record.name, "signal": signal.Signals(number).name}
            _log.info("signal sent to ranks", extra=extra)
        for agent in agents:
            await self.supervisor.signal(agent, number)

    def _handle_event(self, event: Event, now: float) -> None:
        if event.kind == "gone":
            self._live_agents.discard(event.agent)
            if event.agent in self._idle:
                self._starting.discard(event.agent)
            expected = self._killed or self._broken or self.stopping()
            if not expected and (self._running[event.agent] or event.agent in self._starting):
                # The instance agent stopped without reporting the exit of its processes.
                self._broken = f"{self.agents[event.agent]}: its agent was killed from outside the run"
        elif event.kind == "forked":
            self._start_due = self._start_due or now + self.options.start_timeout
        elif event.kind == "failed":
            self._broken = self._broken or event.reason
            if event.agent in self._starting:
                self._broken = f"{self.agents[event.agent]} {NOT_STARTED}: {event.reason}"
        elif event.kind.startswith("usage"):
            self._usage.sampled(event)
        elif (rank := self._ranks.get(event.program)) is not None:
            if event.kind == "started":
                rank.status, rank.started = Status.RUNNING, event.time
                self._pids[rank.rank] = event.pid
                _log.info("rank started", extra=self._logged(rank) | {"rank_pid": event.pid})
            elif event.code is not None:
                rank.ended = event.time
                self._usage.exited(rank, event)
                self._end(rank, event.code, now)
                ended = {"exit_code": rank.exit_code, "signal": rank.signal, "status": rank.status.value}
                _log.info("rank exited", extra=self._logged(rank) | ended)
            self._changed = True
            self.recorder.rank_changed(self.record)
        elif event.kind == "exited" and event.program in self._working and event.code is not None:
            # A launcher exits after its ranks, so their events come first. One killed by others leaves ranks behind.
            self._orphaned = event.code < 0 and not self._killed
            self._read_launcher_events(now)
            self._launcher_failure = judge.how(event.program, event.code)
        if event.kind == "started":
            self._starting.discard(event.agent)
            self._running.get(event.agent, set()).add(event.program)
        if event.kind == "exited":
            self._running.get(event.agent, set()).discard(event.program)
            self._working.discard(event.program)
            if not self._working and self._done is None:
                self._done = now

    def _logged(self, rank: RankRecord) -> dict[str, object]:
        return {"node": self.record.name, "attempt": self.record.attempt, "rank": rank.rank}

    def _end(self, rank: RankRecord, code: int, now: float) -> None:
        reported = self.reports[rank.rank]
        if code and judge.aborted_after_its_work(rank, code, self._pids.get(rank.rank), reported):
            self.recorder.note(
                self.record, f"rank {rank.rank} was aborted by torch's gloo at its exit, after its work: ignored"
            )
            self._forgiven, code = True, 0
        if code and self._dismissed is not None and self._failed is None and not self._orphaned:
            # A server does not exit by itself. Its end after the engine's SIGTERM is not a failure.
            code = 0
        if code == 0:
            rank.status, rank.exit_code = Status.COMPLETED, 0
            return
        if code < 0:
            rank.signal = judge.signal_name(-code)
        else:
            rank.exit_code = code
        if self.stopping() or self._overdue is not None or self._killed or self._orphaned:
            rank.status = Status.CANCELED
        else:
            rank.status = Status.FAILED
            self._failed = self._failed or now

    def _read_launcher_events(self, now: float) -> None:
        if self._launching.events_file is not None:
            events, self._launcher_offset = read_events(self._launching.events_file, self._launcher_offset)
            for event in events:
                self._handle_event(event, now)

    def _read_reports(self, now: float) -> None:
        """Record what the ranks have reported since the last call: their failures, and what rank 0 reports besides."""
        for rank, path in self.reports.items():
            events, self._offsets[rank] = report.read(path, self._offsets[rank])
            for event in events:
                if isinstance(event, report.Failure) and event.pid == self._pids.get(rank):
                    self._raised.setdefault(rank, now)
                elif isinstance(event, report.Finished) and event.pid == self._pids.get(rank):
                    calls = (Call("", number, "", "", time=moment) for number, moment in event.arrivals)
                    self._arrivals.append(Recording(rank, tuple(calls)))
            if rank == 0 and events:
                self._record_progress(events)

    def _record_progress(self, events: Sequence[report.Event]) -> None:
        curves: dict[str, list[Point]] = {}
        for event in events:
            if isinstance(event, report.Progress):
                self.record.progress = Progress(event.step, event.total, event.epoch)
                for name, value in event.metrics.items():
                    curves.setdefault(name, []).append(Point(event.step, value, event.time))
            elif isinstance(event, report.Note):
                self.recorder.note(self.record, event.text)
        self.recorder.progressed(self.record, curves)

    def _judge(self, calls: Sequence[Recording]) -> None:
        record, ranks = self.record, self.record.ranks
        for rank in ranks:
            if rank.status is Status.RUNNING:
                # Killed together with the agent that reports its exit.
                rank.status, rank.ended = Status.CANCELED, rank.ended or time.time()
        verdict = self._verdict(calls)
        record.status = Status.FAILED if verdict else Status.CANCELED if self.stopping() else Status.COMPLETED
        is_measured = len(ranks) > 1 and (record.status is Status.COMPLETED or self._overdue is not None)
        if is_measured and (found := stragglers.find(calls, ranks) or stragglers.find(self._arrivals, ranks)):
            record.straggler = found
            self.recorder.note(record, found)
            verdict = verdict and replace(verdict, consequences=(*verdict.consequences, found))
        record.verdict = verdict
        failed = {rank.rank: raised for rank in ranks if (raised := judge.hidden(rank, self.reports[rank.rank]))}
        if failed and record.status is Status.COMPLETED and not self.step.parallel:
            number, raised = min(failed.items(), key=lambda each: each[1].is_consequence)
            ends = "its command hides that and ends with exit code 0, and the step completes, as on Azure ML"
            self.recorder.note(record, f"rank {number} failed with {raised.located}; {ends}")

    def _verdict(self, calls: Sequence[Recording]) -> Verdict | None:
        """Return the verdict on the attempt; None if it has not failed."""
        name, ranks, verdict, hang = self.record.name, self.record.ranks, self._verdict_on_ranks(calls), self._stalled
        if self._overdue is not None and hang is None:
            hang = of_hang(name, ranks, self._stacks or (), recordings=calls)
        explains = verdict is not None and not (
            ((self._overdue or self._broken or self._orphaned) and signatures.depth(verdict.reason) > 0)
            or (self._orphaned and judge.SILENT in verdict.reason)  # a rank that mpirun had not started yet
        )
        if (known := hang or (verdict if explains else None)) is not None:
            if self._starting:
                self.recorder.note(self.record, f"{self._names(self._starting)} {NOT_STARTED}")
            after = (f"the step: {self._limit()}",) if self._overdue else ()
            return replace(known, consequences=(*known.consequences, *after))
        if self._broken:
            return Verdict(name, self._broken)
        if self._overdue is not None:
            said = (f"{rank_list([verdict.rank or 0])}: {verdict.reason}", *verdict.consequences) if verdict else ()
            log = verdict.log if verdict else ranks[0].log
            return replace(self._with_log(self._limit(), log), consequences=said)
        if self.stopping():
            return None
        if self._launcher_failure and not self._forgiven:
            never = f"{self._names(self._starting)} {NOT_STARTED}: " if self._starting else ""
            return self._with_log(f"{never}{self._launcher_failure}")
        if any(rank.status is not Status.COMPLETED for rank in ranks):
            return self._with_log("its processes were killed from outside the run", ranks[0].log)
        return None

    def _verdict_on_ranks(self, calls: Sequence[Recording]) -> Verdict | None:
        """Return the verdict by what the ranks show; None if none has failed."""
        ranks = self.record.ranks
        raised = any(rank.rank in self._raised for rank in ranks if rank.exit_code != 0)
        if not (raised or self._overdue or any(rank.status is Status.FAILED for rank in ranks)):
            return None
        kills = capacity.memory_kills() - self._memory_kills
        verdict = judge.of_ranks(self.record.name, ranks, self.reports, memory_kills=kills)
        if verdict is None:
            return None
        if self._stacks and signatures.depth(verdict.reason) > 0:
            verdict = of_time_out(verdict, ranks, self._stacks)
        verdict = with_mismatch(verdict, ranks, calls)
        # What ranks called last says nothing where something else has ended some of them.
        calls = () if self._broken or self._orphaned else calls
        return of_waiting(verdict, ranks, calls) if signatures.depth(verdict.reason) > 0 else verdict

    def _limit(self) -> str:
        return f"stopped after {self._timeout:g} s, its limits.timeout"

    def _with_log(self, reason: str, log: str = "") -> Verdict:
        """Return a verdict with the end of a log: that of the launcher's own programs, unless another one is given."""
        log = log or str(self.start.log)
        return Verdict(self.record.name, reason, log=log, tail=tail(log))
