"""Order, parallel steps, retries, and what a failure does to the rest. What is tried here is told by a fake attempt;
processes have tests of their own."""

from __future__ import annotations

import asyncio

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.local.executor import Executor
from allranks.local.slots import Machines, Slots
from allranks.plan.graph import Graph, Plan, Step
from allranks.runs.records import RunRecord, Status, StepRecord


class Trial:
    """Runs a plan whose steps do nothing but end as they are told. ends: by step, the state of each try; Completed if
    it says nothing."""

    def __init__(
        self,
        *steps: Step,
        ends: dict[str, list[Status]] | None = None,
        slots: int = 8,
        retries: int = 0,
        go_on: bool = True,
    ) -> None:
        self.plan = Plan("p", Graph(steps), continue_on_step_failure=go_on)
        records = [StepRecord(step.name, step.name, "", "none", 1, 1, step.needs()) for step in steps]
        self.run = RunRecord("r", "p", "p", "", "loopback", steps=records)
        self.ends = ends or {}
        self.tries: list[str] = []
        self.at_once: list[frozenset[str]] = []
        self.notes: list[str] = []
        self.halted = False
        self.executor = Executor(
            self.plan, self.run, Slots(slots), self.attempt, lambda _, text: self.notes.append(text), self.halt, retries
        )
        self._now: set[str] = set()

    async def attempt(self, step: Step, record: StepRecord) -> None:
        self.tries.append(step.name)
        self._now.add(step.name)
        self.at_once.append(frozenset(self._now))
        for _ in range(3):
            await asyncio.sleep(0)
        self._now.discard(step.name)
        told = self.ends.get(step.name)
        record.status = told.pop(0) if told else Status.COMPLETED

    async def halt(self) -> None:
        self.halted = True

    def execute(self) -> Status:
        return asyncio.run(self.executor.execute())

    def states(self) -> dict[str, Status]:
        return {record.name: record.status for record in self.run.steps}


def test_a_step_starts_when_those_it_needs_have_ended() -> None:
    trial = Trial(
        Step("a", ""), Step("b", "", after=("a",)), Step("c", "", after=("a",)), Step("d", "", after=("b", "c"))
    )
    assert trial.execute() is Status.COMPLETED
    assert trial.tries[0] == "a"
    assert trial.tries[-1] == "d"
    assert frozenset({"b", "c"}) in trial.at_once


@pytest.mark.parametrize(("slots", "together"), [(1, 1), (2, 2), (4, 4)])
def test_as_many_steps_at_once_as_there_are_slots(slots: int, together: int) -> None:
    trial = Trial(*(Step(f"s{number}", "") for number in range(8)), slots=slots)
    trial.execute()
    assert max(map(len, trial.at_once)) == together


def test_a_step_with_more_ranks_than_slots_runs_alone() -> None:
    big = Step("big", "", distribution=PyTorch(8), instance_count=2)
    trial = Trial(Step("a", ""), big, Step("b", ""), slots=4)
    assert trial.execute() is Status.COMPLETED
    assert all(now == {"big"} for now in trial.at_once if "big" in now)


def test_what_needs_a_failed_step_is_not_started() -> None:
    trial = Trial(
        Step("a", ""),
        Step("b", "", after=("a",)),
        Step("c", "", after=("b",)),
        Step("other", ""),
        ends={"a": [Status.FAILED]},
    )
    assert trial.execute() is Status.FAILED
    assert trial.states() == {
        "a": Status.FAILED,
        "b": Status.NOT_STARTED,
        "c": Status.NOT_STARTED,
        "other": Status.COMPLETED,
    }


def test_a_failure_ends_the_run_where_the_pipeline_wants_it() -> None:
    trial = Trial(Step("a", ""), Step("later", ""), ends={"a": [Status.FAILED]}, go_on=False, slots=1)
    assert trial.execute() is Status.FAILED
    assert trial.halted
    assert trial.states()["later"] is Status.NOT_STARTED


@pytest.mark.parametrize(
    ("retries", "state", "attempt"),
    [(0, Status.FAILED, 0), (1, Status.FAILED, 1), (2, Status.COMPLETED, 2), (5, Status.COMPLETED, 2)],
)
def test_a_failed_step_is_tried_again(retries: int, state: Status, attempt: int) -> None:
    trial = Trial(Step("a", ""), ends={"a": [Status.FAILED, Status.FAILED]}, retries=retries)
    assert trial.execute() is state
    assert trial.run.step("a").attempt == attempt
    assert len(trial.tries) == attempt + 1
    assert len(trial.notes) == attempt


def test_a_canceled_step_is_not_tried_again() -> None:
    trial = Trial(Step("a", ""), ends={"a": [Status.CANCELED]}, retries=3)
    assert trial.execute() is Status.CANCELED
    assert trial.tries == ["a"]


def test_after_stop_nothing_more_starts() -> None:
    trial = Trial(Step("a", ""), Step("b", "", after=("a",)))
    trial.executor.stop()
    assert trial.execute() is Status.CANCELED
    assert trial.tries == []


def test_finished_steps_of_a_resumed_run_stay() -> None:
    trial = Trial(Step("a", ""), Step("b", "", after=("a",)))
    trial.run.step("a").status = Status.COMPLETED
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == ["b"]


def test_an_exception_of_an_attempt_ends_the_run() -> None:
    trial = Trial(Step("a", ""), Step("b", "", after=("a",)))

    async def broken(step: Step, record: StepRecord) -> None:
        raise OSError("no space left")

    trial.executor._attempt = broken
    with pytest.raises(OSError, match="no space"):
        trial.execute()


def test_slots_are_given_in_the_order_of_the_queue() -> None:
    async def scenario() -> list[str]:
        slots, got = Slots(2), []

        async def take(name: str, count: int) -> None:
            async with slots.take(count):
                got.append(name)
                await asyncio.sleep(0)

        await asyncio.gather(take("a", 1), take("big", 2), take("c", 1))
        return got

    assert asyncio.run(scenario()) == ["a", "big", "c"]


def test_a_waiter_that_gives_up_leaves_the_queue() -> None:
    async def scenario() -> list[str]:
        slots, got = Slots(1), []

        async def take(name: str) -> None:
            async with slots.take(1):
                got.append(name)
                await asyncio.sleep(0.01)

        first, second, third = (asyncio.create_task(take(name)) for name in "abc")
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, third)
        return got

    assert asyncio.run(scenario()) == ["a", "c"]


def test_machines_are_used_again() -> None:
    machines = Machines()
    assert machines.take(2) == [0, 1]
    assert machines.take(1) == [2]
    machines.give([1])
    assert machines.take(2) == [1, 3]
