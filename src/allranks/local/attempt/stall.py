"""Detect ranks that make no progress: none writes or reports anything, and each stays at its line."""

import asyncio
import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from allranks.history.log_reader import tail
from allranks.history.recorder import RunRecorder
from allranks.history.records import RankRecord, Status, StepRecord, Verdict
from allranks.local import flight_recordings, stack_dumps
from allranks.local.instances.processes import TICKS_PER_SECOND
from allranks.text import rank_list
from allranks.verdict import collectives, signatures, tracebacks
from allranks.verdict.collectives import Call
from allranks.verdict.hangs import of_hang
from allranks.verdict.rank_stack import Stack

LOOKS = 4
"""Number of times that the stacks are read in the second half of the limit, at least every LONGEST seconds."""

LONGEST = 5.0

ANNOUNCE = 30.0
"""Seconds of silence until the user is notified. They double with each notice, as the step is often silent."""

COMPARE = 10.0
"""Seconds of silence until the collectives of the ranks are compared first; then each interval doubles."""

_RETRIES = re.compile(r"\s*$|frame #\d+:|Exception raised from |.*\bretrying\b")
"""Lines that torch writes while it retries a connection. Those of `signatures` are such lines too."""

_MOST_RETRIES = 1 << 16
"""Maximum bytes of such lines between two checks of a log."""

PACE, SHORTEST = 20, 60.0
"""The limit if no rank computes, reads or writes: a multiple of the longest time between two collectives, and a minimum
in seconds. An evaluation and a checkpoint use the processor or files."""

IDLE_CPU, IDLE_BYTES = 0.05, 1 << 20
"""Share of a core, and bytes between two comparisons, that a waiting rank may use. Threads of Ray need 1 %."""

BUSY = 6
"""Factor of the limit while a rank computes, reads or writes: by default 30 minutes in all, which is gloo's time-out.
An evaluation on rank 0 looks like an endless loop."""

_Used = Mapping[int, tuple[float, int]]
"""By process: seconds of CPU time, and bytes read and written."""

CHECK = 1.0
"""Seconds between two checks of the files."""

NO_PY_SPY = 'py-spy is not installed (pip install "allranks[diagnose]")'
NOT_PERMITTED = "py-spy may not read the ranks (kernel.yama.ptrace_scope, or a container without SYS_PTRACE)"
"""Why only the stacks of forked ranks with a torch process group are known: those ranks write their own."""

RAISED = 3.0
"""Seconds in which a rank should exit after its log ends with an exception."""


class StallWatch:
    """The progress monitor of one attempt.

    reports: the report file of each rank
    seconds: the limit of time without progress; 0: no limit
    problem: why stacks cannot be read from outside; "" if they can, or if it was not tried
    """

    def __init__(self, record: StepRecord, reports: Mapping[int, Path], seconds: float) -> None:
        self._record = record
        self._files = [*(rank.log for rank in record.ranks), *map(str, reports.values())]
        self._reports = reports
        self._seconds = seconds
        self._limit = seconds
        self._used: tuple[float, _Used] = 0.0, {}
        self._silent: list[int] = []
        self.problem = ""
        self._sizes: dict[str, int] = {}
        self._ended = 0
        self._since = self._next_check = self._next_look = 0.0
        self._places: Sequence[object] = ()
        self._places_since = 0.0
        self._looking: asyncio.Task[tuple[list[Stack], list[Call], _Used]] | None = None
        self._looked_at: tuple[float, _Used] = 0.0, {}
        self._comparing: asyncio.Task[bool] | None = None
        self._next_comparison = self._next_exceptions = 0.0
        self._noted_problem = False
        self._announce, self._announced = ANNOUNCE, 0.0
        self._ending: set[int] = set()

    async def verdict(self, now: float, recorder: RunRecorder) -> Verdict | None:
        """Return the verdict on ranks that make no progress, or whose collectives never match; None if there are
        none."""
        stacks, record = self.stalled(now), self._record
        self._announce_silence(now, recorder)
        if self.problem and not self._noted_problem and 0 < self._seconds <= self.silence(now):
            self._noted_problem = True
            text = f"its ranks have been silent for {self._seconds:g} s; only some of their stacks are known"
            recorder.note(record, f"{text}: {self.problem}")
        if not stacks and not self.differs(now):
            return None
        stacks = stacks or await self.stacks()
        return of_hang(record.name, record.ranks, stacks, self.silence(now), flight_recordings.read(self._reports))

    def _announce_silence(self, now: float, recorder: RunRecorder) -> None:
        """Notify the user once per silence which ranks are silent, and when the step fails."""
        running = [rank.rank for rank in self._running()]
        if self._announced != self._since and running and self.silence(now) >= self._announce:
            self._announced = self._since
            limit = f"it fails after {self._limit:g} s without progress (--stall)"
            text = f"silent for {self.silence(now):.0f} s: {rank_list(running)}; "
            recorder.announce(self._record, text + (limit if self._seconds else "--stall 0 sets no limit"))
            self._announce *= 2

    def stalled(self, now: float) -> Sequence[Stack]:
        """Return the stacks of the ranks if they have made no progress for `seconds`; none otherwise."""
        self._check_files(now)
        stacks = self._new_stacks(now)
        if not self._seconds or now < self._since + self._limit / 2 or self._looking is not None:
            return ()
        end = self._since + self._limit
        if stacks and now >= end and now >= self._places_since + self._limit / 2:
            return stacks
        if now >= self._next_look:
            pause = min(self._limit / 2 / LOOKS, LONGEST)
            self._next_look = min(now + pause, end) if now < end else now + pause
            self._looking = asyncio.create_task(self._look())
        return ()

    def silence(self, now: float) -> float:
        """Return the number of seconds since a rank last wrote or reported anything."""
        return now - self._since if self._since else 0.0

    async def _look(self) -> tuple[list[Stack], list[Call], _Used]:
        """Return the stacks of the running ranks, the last collective of each rank, and their resource usage."""
        stacks = await self.stacks()
        found = await asyncio.to_thread(flight_recordings.read, self._reports, last=True)
        calls = [call for recording in found for call in recording.calls]
        return stacks, calls, await asyncio.to_thread(stack_dumps.activity, self._running())

    def _running(self) -> list[RankRecord]:
        return [rank for rank in self._record.ranks if rank.status is Status.RUNNING]

    async def stacks(self) -> list[Stack]:
        """Return the current stacks of the running ranks, and the commands of those that have not started Python."""
        running = self._running()
        self._silent = await asyncio.to_thread(flight_recordings.ask, self._reports, self._silent)
        try:
            stacks = await asyncio.to_thread(stack_dumps.rank_stacks, running, self._silent)
            self.problem = NO_PY_SPY if stack_dumps.program() is None else ""
        except PermissionError:
            stacks, self.problem = [], NOT_PERMITTED
        numbers = {rank.rank for rank in running}
        stacks = stacks or [stack for stack in flight_recordings.stacks(self._reports) if stack.rank in numbers]
        # Of the nodes of Ray, only the head runs a program.
        own = [rank for rank in running if rank.rank == 0 or self._record.distribution != "ray"]
        return [*stacks, *await asyncio.to_thread(stack_dumps.shell_stacks, own)]

    def differs(self, now: float) -> bool:
        """Return whether ranks wait in collectives that never match, however long they wait."""
        if self._comparing is not None and self._comparing.done():
            task, self._comparing = self._comparing, None
            return task.result()
        if self._seconds and self._comparing is None and now >= self._next_comparison:
            self._next_comparison = now + max(now - self._since, COMPARE)
            self._comparing = asyncio.create_task(asyncio.to_thread(self._compare, now))
        return False

    def _compare(self, now: float) -> bool:
        """Compare the collectives of the ranks, and set the limit of time without progress."""
        used = stack_dumps.activity(self._running())
        flight_recordings.ask(self._reports, self._silent)
        found = flight_recordings.read(self._reports)
        gap = collectives.longest_gap(found)
        (before, earlier), self._used = self._used, (now, used)
        limit = max(SHORTEST, PACE * (gap or 0.0))
        # This interval is the second half of the silence.
        is_enough = gap is not None and now - before >= limit / 2 and _is_idle(earlier, used, now - before)
        self._limit = min(self._seconds, limit) if is_enough else self._seconds
        difference = collectives.mismatch(found)
        last = [recording.calls[-1] for recording in found if recording.calls]
        return difference is not None and difference.call in last

    async def exiting(self, now: float) -> list[int]:
        """Return the ranks whose log has ended with an exception for some seconds, and whose interpreter is exiting:
        mpi4py, and threads that are not daemons, may keep it from ending."""
        self._check_files(now)
        if now < self._next_exceptions or stack_dumps.program() is None:
            return []
        self._next_exceptions = now + now - self._since
        raised = {rank.rank: workers for rank in self._running() if (workers := _raised_by(rank.log))}
        stacks = await self.stacks() if raised else []
        busy = {stack.rank for stack in stacks if not stack.is_exiting}
        exits = [stack for stack in stacks if stack.is_exiting and stack.rank in raised and not self.problem]
        # Finalizing a large library may take as long; MPI's is known to wait for the other ranks.
        ending, self._ending = self._ending, {each.rank for each in exits}
        exits = [each for each in exits if each.frames or each.uses_mpi or each.rank in ending]
        return [each.rank for each in exits if each.rank not in busy or each.worker in raised[each.rank]]

    def close(self) -> None:
        """Cancel the reading of stacks."""
        for task in filter(None, (self._looking, self._comparing)):
            task.cancel()

    def _check_files(self, now: float) -> None:
        if now < self._next_check:
            return
        self._next_check = now + CHECK
        ended = sum(rank.status.ended for rank in self._record.ranks)
        news = [file for file in self._files if self._has_news(file)]
        if news or ended != self._ended or not self._since:
            self._ended, self._since, self._next_exceptions = ended, now, now + RAISED
            self._places, self._used, self._limit = (), (now, {}), self._seconds
            self._next_comparison = now + min(COMPARE, self._seconds / 2)

    def _has_news(self, file: str) -> bool:
        """Return whether a rank has written anything but connection retries."""
        size, before = 0, self._sizes.get(file, 0)
        with contextlib.suppress(OSError):
            size = os.stat(file).st_size
        self._sizes[file] = size
        if size <= before or size - before > _MOST_RETRIES:
            return size != before
        return not only_retries(tail(file, size - before, size - before))

    def _new_stacks(self, now: float) -> list[Stack]:
        """Return the stacks that have just been read."""
        if self._looking is None or not self._looking.done():
            return []
        (stacks, calls, used), self._looking = self._looking.result(), None
        (before, earlier), self._looked_at = self._looked_at, (now, used)
        # Of backward() and a function of TensorFlow, the stack is the same while they compute and while they wait. A
        # rank without frames exits: MPI_Finalize uses the processor while it waits for the others.
        free = [stack for stack in stacks if (stack.frames or stack.command) and not stack.collective]
        computes = not all(_is_idle(earlier, used, now - before, stack.pid) for stack in free)
        if any(stack.is_of_ray for stack in stacks):
            computes = not _is_idle(earlier, used, now - before)  # a task may take any time, in any thread
        elif len(free) < len(stacks) or not all(stack.computation for stack in free):
            computes = computes and now < self._since + BUSY * self._limit
        # A silent loop stays at the same line and calls further collectives; a loop of a library calls other functions.
        places = [[each.frames if each.may_wait else each.user or each.frames[:1] for each in stacks], calls]
        if places != self._places or computes:
            self._places, self._places_since = places, now
        return stacks


def only_retries(lines: Iterable[str]) -> bool:
    """Return whether all lines of a log are connection retries."""
    return all(_RETRIES.match(line) or signatures.depth(line) > 0 for line in lines)


def _is_idle(before: _Used, after: _Used, seconds: float, pid: int = 0) -> bool:
    """Return whether the processes, or only this one, used almost nothing between two measurements."""
    pids = {pid} if pid else before.keys() | after.keys()
    cpu = IDLE_CPU * seconds + 1 / TICKS_PER_SECOND  # the time is counted in ticks
    return set() < pids <= before.keys() & after.keys() and all(
        after[each][0] - before[each][0] <= cpu and after[each][1] - before[each][1] <= IDLE_BYTES for each in pids
    )


def _raised_by(log: str) -> set[int | None]:
    """Return the workers (None without a launcher) of the exceptions in a log that ends with an exception."""
    lines = [line for line in tracebacks.last_lines(log) if line.strip()]
    found = tracebacks.of_lines(lines)
    ends = any(lines[-1].strip().endswith(each.lines[-1].strip()) for each in found)
    return {each.worker for each in found} if ends else set()
