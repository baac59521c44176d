"""Order, steps that run at the same time, retries, and what a failure does to the rest. Processes have tests of their
own."""

from dataclasses import replace

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.history.records import Status, StepRecord
from allranks.local.scope import Scope
from allranks.local.slots import Share
from allranks.plan.graph import Step
from trials import Trials


def test_a_step_starts_when_those_it_needs_have_ended(trial_of: Trials) -> None:
    trial = trial_of(
        Step("a", ""), Step("b", "", after=("a",)), Step("c", "", after=("a",)), Step("d", "", after=("b", "c"))
    )
    assert trial.execute() is Status.COMPLETED
    assert trial.tries[0] == "a"
    assert trial.tries[-1] == "d"
    assert frozenset({"b", "c"}) in trial.at_once


@pytest.mark.parametrize(("slots", "together"), [(1, 1), (2, 2), (4, 4)])
def test_as_many_steps_at_once_as_there_are_slots(trial_of: Trials, slots: int, together: int) -> None:
    trial = trial_of(*(Step(f"s{number}", "") for number in range(8)), slots=slots)
    trial.execute()
    assert max(map(len, trial.at_once)) == together


def test_a_step_with_more_ranks_than_slots_runs_alone(trial_of: Trials) -> None:
    big = Step("big", "", distribution=PyTorch(8), instance_count=2)
    trial = trial_of(Step("a", ""), big, Step("b", ""), slots=4)
    assert trial.execute() is Status.COMPLETED
    assert all(now == {"big"} for now in trial.at_once if "big" in now)


def test_what_needs_a_failed_step_is_not_started(trial_of: Trials) -> None:
    trial = trial_of(
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


@pytest.mark.parametrize("go_on", [True, False])
@pytest.mark.parametrize(("failing", "tries"), [("a", ["first", "a", "last"]), ("first", ["first", "last"])])
def test_the_last_node_runs_however_the_others_end_and_the_first_before_them(
    trial_of: Trials, failing: str, tries: list[str], go_on: bool
) -> None:
    steps = (Step("first", ""), Step("a", ""), Step("b", "", after=("a",)), Step("last", ""))
    trial = trial_of(*steps, ends={failing: [Status.FAILED]}, go_on=go_on)
    trial.graph = replace(trial.graph, first="first", last="last")
    assert trial.execute() is Status.FAILED
    assert trial.tries == tries
    assert trial.states()["last"] is Status.COMPLETED


def test_the_last_node_does_not_run_after_stop(trial_of: Trials) -> None:
    trial = trial_of(Step("a", ""), Step("last", ""))
    trial.graph = replace(trial.graph, last="last")
    trial.executor.stop()
    assert trial.execute() is Status.CANCELED
    assert trial.tries == []


def test_a_failure_ends_the_run_where_the_pipeline_wants_it(trial_of: Trials) -> None:
    trial = trial_of(Step("a", ""), Step("later", ""), ends={"a": [Status.FAILED]}, go_on=False, slots=1)
    assert trial.execute() is Status.FAILED
    assert trial.halted
    assert trial.states()["later"] is Status.NOT_STARTED


@pytest.mark.parametrize(
    ("retries", "state", "attempt"),
    [(0, Status.FAILED, 0), (1, Status.FAILED, 1), (2, Status.COMPLETED, 2), (5, Status.COMPLETED, 2)],
)
def test_a_failed_step_is_tried_again(trial_of: Trials, retries: int, state: Status, attempt: int) -> None:
    trial = trial_of(Step("a", ""), ends={"a": [Status.FAILED, Status.FAILED]}, retries=retries)
    assert trial.execute() is state
    assert trial.run.step("a").attempt == attempt
    assert len(trial.tries) == attempt + 1
    assert len(trial.run.step("a").notes) == attempt


def test_a_canceled_step_is_not_tried_again(trial_of: Trials) -> None:
    trial = trial_of(Step("a", ""), ends={"a": [Status.CANCELED]}, retries=3)
    assert trial.execute() is Status.CANCELED
    assert trial.tries == ["a"]


def test_after_stop_nothing_more_starts(trial_of: Trials) -> None:
    trial = trial_of(Step("a", ""), Step("b", "", after=("a",)))
    trial.executor.stop()
    assert trial.execute() is Status.CANCELED
    assert trial.tries == []


def test_finished_steps_of_a_resumed_run_stay(trial_of: Trials) -> None:
    trial = trial_of(Step("a", ""), Step("b", "", after=("a",)), ends={"b": [Status.FAILED]})
    assert trial.execute() is Status.FAILED
    trial.again()
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == ["a", "b", "b"]


def test_an_exception_within_a_node_ends_that_node_alone(trial_of: Trials) -> None:
    trial = trial_of(Step("a", ""), Step("b", "", after=("a",)), Step("other", ""))
    good = trial.attempt

    async def broken(scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        if step.name == "a":
            raise RuntimeError("a mistake of ours")
        await good(scope, step, record, share)

    trial.attempt = broken  # type: ignore[method-assign]
    assert trial.execute() is Status.FAILED
    assert trial.states() == {"a": Status.FAILED, "b": Status.NOT_STARTED, "other": Status.COMPLETED}
    verdict = trial.run.step("a").verdict
    assert verdict is not None
    assert verdict.reason == "RuntimeError: a mistake of ours"


def test_a_full_disk_ends_the_run(trial_of: Trials) -> None:
    trial = trial_of(Step("a", ""), Step("b", "", after=("a",)))

    async def broken(scope: Scope, step: Step, record: StepRecord, share: Share) -> None:
        raise OSError(28, "No space left on device")

    trial.attempt = broken  # type: ignore[method-assign]
    with pytest.raises(OSError, match="No space"):
        trial.execute()
