"""The steps of a run that are at work, and how they are ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator, Sequence

from allranks.local.instances.supervisor import Supervisor
from allranks.local.step.monitor import GRACE
from allranks.local.step.stop import StepStops
from allranks.local.tracking.client import Tracking
from allranks.plan.node_records import is_within

TRACKING_GRACE = 5.0
"""Seconds that MLflow has, once every rank of a run that is stopped has been killed, to learn how its runs ended."""


class RunningSteps:
    """Ends the steps that are at work: their files are not read or copied any further, and their ranks get signals."""

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
        """Yield what tells a step to stop, while it reads, copies or runs."""
        stops = self._stops[step] = StepStops()
        if self.is_ending(step):
            stops.set()
        try:
            yield stops
        finally:
            del self._stops[step]

    @contextlib.contextmanager
    def launching(self, step: str, agents: Sequence[str]) -> Iterator[None]:
        """While this lasts, these agents start and run the ranks of a step."""
        self._agents.update(dict.fromkeys(agents, step))
        try:
            yield
        finally:
            for agent in agents:
                self._agents.pop(agent, None)
            self._idle.set()

    def is_ending(self, step: str) -> bool:
        """Return whether a step was told to end."""
        return self._stopping or any(is_within(step, path) for path in self._canceled)

    async def stop(self, grace: float) -> None:
        """End every rank that runs, and their steps as Canceled: SIGTERM, then after `grace` seconds SIGKILL.

        Inputs are read no further. Outputs of ranks that have ended are saved within the same time.
        """
        self._stopping = True
        for stops in self._stops.values():
            stops.staging.set()
        loop = asyncio.get_running_loop()
        loop.call_later(grace, self._stop_files)
        loop.call_later(grace + TRACKING_GRACE, self._tracking.abandon)
        await self._end(list(self._agents), grace)

    async def cancel(self, path: str) -> None:
        """End the steps that run at that path or below it, as Canceled. A second time, their ranks end at once."""
        grace = 0.0 if path in self._canceled else GRACE
        self._canceled.add(path)
        for step, stops in self._stops.items():
            if is_within(step, path):
                stops.set()
        await self._end([agent for agent, step in self._agents.items() if is_within(step, path)], grace)

    async def kill(self) -> None:
        """End every rank that runs, at once."""
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
