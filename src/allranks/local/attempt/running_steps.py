"""Stop the running steps of a run, and fail them on errors with their files."""

import asyncio
import contextlib
import errno
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from allranks.history.records import Status, StepRecord, Verdict
from allranks.local.attempt.lifecycle import GRACE
from allranks.local.instances.supervisor import Supervisor
from allranks.local.tracking.client import Tracking
from allranks.plan.file_tree import StoppedError
from allranks.plan.walk import is_within

Result = TypeVar("Result")


class Stop:
    """A request to stop, for threads and coroutines. Only `is_set` is thread-safe."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._waiting: set[asyncio.Future[None]] = set()

    def is_set(self) -> bool:
        """Return whether a stop was requested."""
        return self._event.is_set()

    def set(self) -> None:
        """Request the stop."""
        self._event.set()
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def or_result(self, task: asyncio.Task[Result]) -> Result:
        """Return the result of a task for which others may wait too. The task continues if this raises.

        Raise StoppedError once this is set.
        """
        if self.is_set():
            raise StoppedError
        stopped = asyncio.get_running_loop().create_future()
        self._waiting.add(stopped)
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.discard(stopped)
        if task.done():
            return task.result()
        raise StoppedError


class StepStops:
    """The requests to stop one step.

    staging: stops reading and copying its inputs
    saving:  stops reading and copying its outputs
    """

    def __init__(self) -> None:
        self.staging = Stop()
        self.saving = Stop()

    def set(self) -> None:
        """Request both stops."""
        self.staging.set()
        self.saving.set()


async def run_io(work: Callable[[], Result], *, in_thread: bool) -> Result:
    """Run file operations, in a thread if they may copy or digest many files. For a small step, waking a thread takes
    longer than the file operations."""
    return await asyncio.to_thread(work) if in_thread else work()


@contextlib.contextmanager
def fail_on_error(record: StepRecord) -> Iterator[None]:
    """Turn an error with the step's files, such as an unreadable input, into a failure of the step instead of the run.

    Raise OSError if this machine's disk is full.
    """
    try:
        yield
    except StoppedError:
        record.status = Status.CANCELED
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        problem = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        record.status = Status.FAILED
        record.verdict = Verdict(record.name, f"its files cannot be read or written: {problem}")


TRACKING_GRACE = 5.0
"""Seconds that MLflow has to end its runs after all ranks of a stopped run have been killed."""


class RunningSteps:
    """Stop running steps: end the reading and copying of their files, and send signals to their ranks."""

    def __init__(self, supervisor: Supervisor, tracking: Tracking) -> None:
        self._supervisor = supervisor
        self._tracking = tracking
        self._stops: dict[str, StepStops] = {}
        self._agents: dict[str, str] = {}
        self._idle = asyncio.Event()
        self._stopping = False
        self._canceled: set[str] = set()

    @contextlib.contextmanager
    def stoppable(self, step: str) -> Iterator[StepStops]:
        """Yield the stops of a step while it reads, copies or runs."""
        stops = self._stops[step] = StepStops()
        if self.is_ending(step):
            stops.set()
        try:
            yield stops
        finally:
            del self._stops[step]

    @contextlib.contextmanager
    def launching(self, step: str, agents: Sequence[str]) -> Iterator[None]:
        """Register the agents that start and run the ranks of a step, for the duration of the block."""
        self._agents.update(dict.fromkeys(agents, step))
        try:
            yield
        finally:
            for agent in agents:
                self._agents.pop(agent, None)
            self._idle.set()

    def is_ending(self, step: str) -> bool:
        return self._stopping or any(is_within(step, path) for path in self._canceled)

    async def stop(self, grace: float) -> None:
        """Cancel all running steps. Their monitors send SIGTERM to the ranks; after `grace` seconds they get SIGKILL.

        Inputs are no longer read. Outputs of ranks that have ended are saved within the same time.
        """
        self._stopping = True
        for stops in self._stops.values():
            stops.staging.set()
        loop = asyncio.get_running_loop()
        loop.call_later(grace, self._stop_files)
        loop.call_later(grace + TRACKING_GRACE, self._tracking.abandon)
        await self._end(list(self._agents), grace)

    async def cancel(self, path: str) -> None:
        """Cancel the running steps at this path and below it. The second call kills their ranks immediately."""
        grace = 0.0 if path in self._canceled else GRACE
        self._canceled.add(path)
        for step, stops in self._stops.items():
            if is_within(step, path):
                stops.set()
        await self._end([agent for agent, step in self._agents.items() if is_within(step, path)], grace)

    async def kill(self) -> None:
        """Kill all running ranks immediately."""
        self._stopping = True
        self._stop_files()
        asyncio.get_running_loop().call_later(TRACKING_GRACE, self._tracking.abandon)
        await self._signal(list(self._agents), signal.SIGKILL)

    def _stop_files(self) -> None:
        for stops in self._stops.values():
            stops.set()

    async def _end(self, agents: list[str], grace: float) -> None:
        end = asyncio.get_running_loop().time() + grace
        while any(agent in self._agents for agent in agents):
            self._idle.clear()
            try:
                await asyncio.wait_for(self._idle.wait(), end - asyncio.get_running_loop().time())
            except TimeoutError:
                break
        await self._signal([agent for agent in agents if agent in self._agents], signal.SIGKILL)

    async def _signal(self, agents: list[str], number: int) -> None:
        for agent in agents:
            await self._supervisor.signal(agent, number)
