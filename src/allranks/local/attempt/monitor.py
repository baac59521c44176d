"""Monitor the ranks of one attempt until its last process has ended."""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.contract import report
from allranks.history.recorder import RunRecorder
from allranks.history.records import Point, Progress, RankRecord, Status, StepRecord
from allranks.local import capacity, flight_recordings
from allranks.local.attempt.lifecycle import (
    Action,
    Limits,
    State,
    Surroundings,
    advance,
    after_event,
    with_failure,
    with_raised,
)
from allranks.local.attempt.outcome import Observations, judge_attempt
from allranks.local.attempt.stall import RAISED, StallWatch
from allranks.local.attempt.start import Start
from allranks.local.attempt.usage_watch import UsageWatch
from allranks.local.instances.supervisor import Event, Supervisor
from allranks.local.launchers.launching import rank_name, read_events
from allranks.local.options import Options
from allranks.local.stack_dumps import pids_of, signal_all
from allranks.plan.graph import Step
from allranks.verdict import judge, signatures
from allranks.verdict.collectives import Call, Recording

_log = logging.getLogger(__name__)

POLL = 0.2
"""Seconds between two polls of rank 0's report."""


@dataclass(eq=False)
class AttemptMonitor:
    """The monitor of one attempt.

    agents:   the name of each instance's agent, and the instance's name, for messages
    start:    the programs that were started
    reports:  the report file of each rank
    debugged: whether a debugger may stop ranks, so that a rank that raised an exception may take long to exit
    evicting: returns whether an evicted instance is in its grace period, during which a failed rank ends no others
    stopping: returns whether the run is being stopped. A rank that a signal then ends has not failed
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
    debugged: bool
    evicting: Callable[[], bool]
    stopping: Callable[[], bool]

    def __post_init__(self) -> None:
        launching = self.start.launching
        programs = zip(self.agents, launching.programs, strict=False)
        self._limits = Limits(
            self.agents,
            frozenset(agent for agent, started in programs if not started),
            launching.decisive,
            launching.linger,
            None if self.debugged else self.step.timeout,
            self.options.start_timeout,
            self.debugged,
        )
        self._launcher_events = launching.events_file
        self._launcher_offset = 0
        self._ranks = {rank_name(rank.rank): rank for rank in self.record.ranks}
        self._usage = UsageWatch(self.record, self.recorder, self.step.instance_type)
        self._stall = StallWatch(self.record, self.reports, self.options.stall)
        self._facts = Observations(self._limits, self.reports, str(self.start.log))
        self._changed = False
        self._pids: dict[int, int | None] = {}
        self._offsets = dict.fromkeys(self.reports, 0)
        self._forgiven = False
        self._memory_kills = capacity.memory_kills()

    async def until_gone(self) -> None:
        """Wait until all processes of the attempt have ended. Then set the status of its record and, if it failed, the
        verdict."""
        loop = asyncio.get_running_loop()
        self._clock = loop.time
        self._state = State.at_start(self._limits, self._clock())
        while self._state.live:
            # A timeout for the queue would create a task for every event.
            tick = loop.call_later(POLL, self.events.put_nowait, None)
            try:
                event = await self.events.get()
            finally:
                tick.cancel()
            if event is not None:
                self._handle_event(event)
            else:
                self._read_reports()
                self._read_launcher_events()
                await self._look_for_stall()
                if self._changed:
                    self._changed = False
                    self.recorder.save(self.record)
            self._state, actions = advance(self._state, self._limits, self._surroundings(), self._clock())
            for action in actions:
                await self._do(action)
        self._stall.close()
        self._read_reports()
        self._facts.calls = await asyncio.to_thread(flight_recordings.read, self.reports)
        self._facts.stopping = self.stopping()
        self._facts.memory_kills = capacity.memory_kills() - self._memory_kills
        if self._forgiven:
            self._facts.launcher_failure = ""
        judge_attempt(self.step, self.record, self.recorder, self._state, self._facts)
        flight_recordings.remove(self.reports)

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            stopping=self.stopping(),
            evicting=self.evicting(),
            running=not all(rank.status.ended for rank in self.record.ranks),
            stalled=self._facts.stalled is not None,
            remaining=not self._state.terminated or bool(pids_of(self.record.ranks)),
        )

    async def _do(self, action: Action) -> None:
        if action is Action.KILL:
            await self._signal(signal.SIGKILL)
        elif action is Action.DISMISS:
            await self._signal(signal.SIGTERM)
        elif action is Action.TERMINATE:
            # mpirun's ranks get the signal directly: mpirun would wait for its own grace period.
            if self._launcher_events is not None and (pids := pids_of(self.record.ranks)):
                self._state = replace(self._state, terminated=True)
                signal_all(pids, signal.SIGTERM)
            else:
                await self._signal(signal.SIGTERM)
        elif action is Action.READ_STACKS:
            self._facts.stacks = await self._stall.stacks()
        elif action is Action.READ_STACKS_OF_VICTIMS:
            first = judge.of_ranks(self.record.name, self.record.ranks, self.reports)
            if first is not None and signatures.depth(first.reason):
                self._facts.stacks = await self._stall.stacks()

    async def _look_for_stall(self) -> None:
        """Fail the step if its ranks make no progress. End ranks that raised an exception and do not exit."""
        state, now = self._state, self._clock()
        if state.failed or state.overdue or state.killed or self.stopping() or self.debugged:
            return
        for rank in await self._stall.exiting(now):
            self._state = with_raised(self._state, rank, now - RAISED)
        self._facts.stalled = await self._stall.verdict(now, self.recorder)

    async def _signal(self, number: int) -> None:
        # An agent whose programs have ended ends by itself.
        state = self._state
        agents = [agent for agent in state.live if not state.done or state.programs[agent] or agent in state.starting]
        if agents:
            extra = {"node": self.record.name, "signal": signal.Signals(number).name}
            _log.info("signal sent to ranks", extra=extra)
        for agent in agents:
            await self.supervisor.signal(agent, number)

    def _handle_event(self, event: Event) -> None:
        if event.kind.startswith("usage"):
            self._usage.sample(event)
            return
        if (rank := self._ranks.get(event.program)) is not None:
            self._handle_rank(rank, event)
        is_launcher = rank is None and event.kind == "exited" and event.program in self._state.working
        self._state = after_event(self._state, self._limits, event, self._surroundings(), self._clock())
        if is_launcher and event.code is not None:
            # A launcher exits after its ranks, so their events come first. If it was killed, its ranks remain.
            self._read_launcher_events()
            self._facts.launcher_failure = judge.how(event.program, event.code)

    def _handle_rank(self, rank: RankRecord, event: Event) -> None:
        if event.kind == "started":
            rank.status, rank.started = Status.RUNNING, event.time
            self._pids.setdefault(rank.rank, event.pid)  # mpirun's ranks report their start later
            _log.info("rank started", extra=self._log_fields(rank) | {"rank_pid": event.pid})
        elif event.kind == "moved":
            self._pids[rank.rank] = event.pid
        elif event.kind == "used":
            self._usage.add_end(rank, event)
        elif event.code is not None:
            rank.ended = event.time
            self._usage.add_end(rank, event)
            self._end(rank, event.code)
            ended = {"exit_code": rank.exit_code, "signal": rank.signal, "status": rank.status.value}
            _log.info("rank exited", extra=self._log_fields(rank) | ended)
        self._changed = True
        self.recorder.rank_changed(self.record)

    def _log_fields(self, rank: RankRecord) -> dict[str, object]:
        return {"node": self.record.name, "attempt": self.record.attempt, "rank": rank.rank}

    def _end(self, rank: RankRecord, code: int) -> None:
        reported = self.reports[rank.rank]
        if code and judge.aborted_after_its_work(rank, code, self._pids.get(rank.rank), reported):
            self.recorder.note(
                self.record, f"rank {rank.rank} was aborted by torch's gloo at exit, after its work; this is ignored"
            )
            self._forgiven, code = True, 0
        code = code and self._state.recorded_code(code)
        if code == 0:
            rank.status, rank.exit_code = Status.COMPLETED, 0
            return
        if code < 0:
            rank.signal = judge.signal_name(-code)
        else:
            rank.exit_code = code
        if self._state.is_ended_by_engine(self._surroundings()):
            rank.status = Status.CANCELED
        else:
            rank.status = Status.FAILED
            self._state = with_failure(self._state, self._clock())

    def _read_launcher_events(self) -> None:
        if self._launcher_events is not None:
            events, self._launcher_offset = read_events(self._launcher_events, self._launcher_offset)
            for event in events:
                self._handle_event(event)

    def _read_reports(self) -> None:
        """Record new reports of the ranks: the failures of all, and the other events of rank 0."""
        for rank, path in self.reports.items():
            events, self._offsets[rank] = report.read(path, self._offsets[rank])
            for event in events:
                if isinstance(event, report.Failure) and event.pid == self._pids.get(rank):
                    self._state = with_raised(self._state, rank, self._clock())
                elif isinstance(event, report.Finished) and event.pid == self._pids.get(rank):
                    calls = (Call("", number, "", "", time=moment) for number, moment in event.arrivals)
                    self._facts.arrivals.append(Recording(rank, tuple(calls)))
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
