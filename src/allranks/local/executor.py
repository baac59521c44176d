"""Runs the steps of a plan in their order, side by side as far as the machine's slots go. It starts nothing itself: a
step is tried by what it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from allranks.contract.distributions import processes_per_instance
from allranks.local.slots import Slots
from allranks.plan.graph import Plan, Step
from allranks.runs.records import RunRecord, Status, StepRecord

Try = Callable[[Step, StepRecord], Awaitable[None]]
"""Tries a step once. Its record tells how it went: Completed, Failed or Canceled."""


class Executor:
    """One execution of a plan.

    attempt: tries a step
    note:    tells a user something about a step
    halt:    ends the steps that run, when a failed step ends the run
    retries: how often a failed step is tried again
    """

    def __init__(
        self,
        plan: Plan,
        run: RunRecord,
        slots: Slots,
        attempt: Try,
        note: Callable[[StepRecord, str], None],
        halt: Callable[[], Awaitable[None]],
        retries: int = 0,
    ) -> None:
        self._plan = plan
        self._run = run
        self._slots = slots
        self._attempt = attempt
        self._note = note
        self._halt = halt
        self._retries = retries
        self._stopped = False
        self._over = {step.name: asyncio.Event() for step in plan.steps}

    async def execute(self) -> Status:
        """Runs every step that can run. Returns Completed, Failed, or Canceled after `stop`."""
        tasks = [asyncio.create_task(self._step(step)) for step in self._plan.steps]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        states = {record.status for record in self._run.steps}
        if Status.FAILED in states:
            return Status.FAILED
        return Status.COMPLETED if states <= {Status.COMPLETED} else Status.CANCELED

    def stop(self) -> None:
        """Starts no further step. Those that run are not touched."""
        self._stopped = True

    async def _step(self, step: Step) -> None:
        record = self._run.step(step.name)
        try:
            if record.status is Status.COMPLETED:
                return
            for name in step.needs():
                await self._over[name].wait()
                if self._run.step(name).status is not Status.COMPLETED:
                    return
            async with self._slots.take(ranks(step)):
                await self._try(step, record)
        finally:
            self._over[step.name].set()

    async def _try(self, step: Step, record: StepRecord) -> None:
        for left in range(self._retries, -1, -1):
            if self._stopped:
                return
            await self._attempt(step, record)
            if record.status is not Status.FAILED:
                return
            if left and not self._stopped:
                self._note(record, f"failed, and is tried again ({left} {'retry' if left == 1 else 'retries'} left)")
                record.attempt += 1
        if not self._plan.continue_on_step_failure and not self._stopped:
            self._stopped = True
            await self._halt()


def ranks(step: Step) -> int:
    """How many processes a step starts at once on this machine."""
    return step.instance_count * processes_per_instance(step.distribution)
