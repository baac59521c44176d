"""The running steps of a run, and how to stop them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Sequence

from allranks.local.attempt.monitor import GRACE
from allranks.local.attempt.stop import StepStops
from allranks.local.instances.supervisor import Supervisor
from allranks.local.tracking.client import Tracking
from allranks.plan.node_records import is_within

TRACKING_GRACE = 5.0
"""Seconds that MLflow has to end its runs after all ranks of a stopped run have been killed."""


class RunningSteps:
    """Stop running steps: their files are no longer read or copied, and their ranks get signals."""

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
        """Return whether a step must end."""
        return self._stopping or any(is_within(step, path) for path in self._canceled)

    async def stop(self, grace: float) -> None:
        """Cancel all running steps. Send SIGTERM to their ranks, and SIGKILL after `grace` seconds.

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
        await self._signal(agents, signal.SIGTERM)
        end = asyncio.get_running_loop().time() + grace
        while any(agent in self._agents for agent in agents):
            self._idle.clear()
            try:
                await asyncio.wait_for(self._idle.wait(), end - asyncio.get_running_loop().time())
            except asyncio.TimeoutError:
                break
        await self._signal([agent for agent in agents if agent in self._agents], signal.SIGKILL)

    async def _signal(self, agents: list[str], number: int) -> None:
        for agent in agents:
            await self._supervisor.signal(agent, number)
