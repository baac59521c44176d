"""The life of an attempt's processes, without any process: events, moments, and what the engine does then."""

import signal
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from allranks.history.records import RankRecord, Status, StepRecord
from allranks.local.attempt import lifecycle
from allranks.local.attempt.lifecycle import Action, Limits, State, Surroundings, advance, after_event, with_failure
from allranks.local.attempt.outcome import Observations, judge_attempt
from allranks.local.instances.supervisor import Event
from allranks.plan.graph import Step

AGENTS = {"a": "instance 0 (node-0)", "b": "instance 1 (node-1)"}
LIMITS = Limits(AGENTS, frozenset(), frozenset({"rank 0", "rank 1"}), linger=1.0, timeout=100.0, start_timeout=20.0)
QUIET = Surroundings()


def event(kind: str, agent: str = "a", program: str = "", code: int | None = None, reason: str = "") -> Event:
    return Event(kind, agent, 0.0, program, code=code, reason=reason)


def after(*events: Event, limits: Limits = LIMITS, around: Surroundings = QUIET, now: float = 0.0) -> State:
    state = State.at_start(limits, 0.0)
    for each in events:
        state = after_event(state, limits, each, around, now)
    return state


RUNNING = after(event("forked"), event("started", "a", "rank 0"), event("forked", "b"), event("started", "b", "rank 1"))
DONE = after_event(
    after_event(RUNNING, LIMITS, event("exited", "a", "rank 0", 0), QUIET, 50.0),
    LIMITS, event("exited", "b", "rank 1", 0), QUIET, 60.0,
)  # fmt: skip
FAILED = with_failure(RUNNING, 50.0)


@pytest.mark.parametrize(
    ("state", "around", "now", "actions"),
    [
        (RUNNING, QUIET, 99.0, ()),
        (RUNNING, QUIET, 100.5, (Action.READ_STACKS, Action.TERMINATE)),
        (RUNNING, Surroundings(stopping=True), 1.0, (Action.TERMINATE,)),
        (RUNNING, Surroundings(stalled=True), 1.0, (Action.KILL,)),
        (FAILED, QUIET, 50.5, (Action.READ_STACKS_OF_VICTIMS,)),
        (FAILED, QUIET, 50.1 + lifecycle.SETTLE, (Action.READ_STACKS_OF_VICTIMS, Action.KILL)),
        (FAILED, Surroundings(evicting=True), 50.1 + lifecycle.SETTLE, (Action.READ_STACKS_OF_VICTIMS,)),
        (FAILED, Surroundings(evicting=True, running=False), 60.0, (Action.READ_STACKS_OF_VICTIMS, Action.KILL)),
        (DONE, QUIET, 60.5, ()),
        (DONE, QUIET, 61.5, (Action.DISMISS,)),
        (replace(DONE, dismissed=61.0), QUIET, 61.5 + lifecycle.DISMISSAL, (Action.KILL,)),
        (replace(RUNNING, raised={0: 50.0}), QUIET, 51.0, ()),
        (replace(RUNNING, raised={0: 50.0}), QUIET, 50.1 + lifecycle.RAISED, (Action.KILL,)),
        (replace(RUNNING, terminated=True, stopped=True), Surroundings(True, remaining=False), 1.0, (Action.KILL,)),
        (replace(RUNNING, overdue=100.0, stacks_asked=True), QUIET, 100.1 + lifecycle.GRACE, (Action.KILL,)),
    ],
)  # fmt: skip
def test_what_is_done_at_a_moment(state: State, around: Surroundings, now: float, actions: tuple[Action, ...]) -> None:
    later, done = advance(state, LIMITS, around, now)
    assert done == actions
    assert advance(later, LIMITS, around, now) == (later, ())  # each is done once


def test_nobody_is_late_in_a_debugger() -> None:
    limits = replace(LIMITS, debugged=True, timeout=None)
    state = replace(RUNNING, raised={0: 50.0})
    assert advance(state, limits, QUIET, 5000.0) == (state, ())


def test_an_instance_that_does_not_start_is_named() -> None:
    state, actions = advance(after(event("forked"), event("started", "a", "rank 0")), LIMITS, QUIET, 20.5)
    assert actions == (Action.KILL,)
    assert state.broken.startswith("instance 1 (node-1)")
    assert state.broken.endswith("within 20 s")


def test_the_first_reason_stays() -> None:
    state = after(event("started", "a", "rank 0"), event("gone"), event("failed", "b", reason="no memory"))
    assert state.broken.startswith("instance 1 (node-1)")
    assert state.broken.endswith("no memory")
    assert state.live == {"b"}
    killed = after(event("started", "a", "rank 0"), event("gone"), event("gone", "b"))
    assert killed.broken == "instance 0 (node-0): its agent was killed from outside the run"


@pytest.mark.parametrize(
    ("before", "around"), [(replace(RUNNING, killed=True), QUIET), (RUNNING, Surroundings(stopping=True))]
)
def test_an_agent_that_the_engine_ends_breaks_nothing(before: State, around: Surroundings) -> None:
    assert after_event(before, LIMITS, event("gone"), around, 0.0).broken == ""


def test_a_launcher_that_others_kill_leaves_its_ranks() -> None:
    limits = Limits(AGENTS, frozenset({"b"}), frozenset({"mpirun"}))
    state = after(event("started", "a", "mpirun"), event("exited", "a", "mpirun", -signal.SIGKILL), limits=limits)
    assert state.orphaned
    assert state.is_ended_by_engine(QUIET)
    assert advance(state, limits, QUIET, 0.0)[1] == (Action.DISMISS,)
    assert not after(event("started", "a", "mpirun"), event("exited", "a", "mpirun", 1), limits=limits).orphaned


def test_a_server_that_is_dismissed_has_not_failed() -> None:
    dismissed = replace(DONE, dismissed=61.0)
    assert dismissed.recorded_code(-signal.SIGTERM) == 0
    assert replace(dismissed, orphaned=True).recorded_code(-signal.SIGTERM) == -signal.SIGTERM
    assert RUNNING.recorded_code(1) == 1


def test_a_rank_that_dies_with_its_agent_is_not_the_cause(tmp_path: Path) -> None:
    """A launcher may still report the end of a rank whose agent was killed."""
    state = after(event("started", "a", "rank 0"), event("started", "b", "rank 1"), event("gone", "b"))
    ranks = [RankRecord(number, number, 0, f"node-{number}", log=str(tmp_path / f"{number}.txt")) for number in (0, 1)]
    ranks[0].status, ranks[0].exit_code = Status.CANCELED, -9
    ranks[1].status, ranks[1].exit_code, ranks[1].signal = Status.FAILED, -9, "SIGKILL"
    record = StepRecord("train", "", "", "mpi", 2, 1, ranks=ranks)
    facts = Observations(LIMITS, {number: tmp_path / f"{number}.report" for number in (0, 1)}, "")
    judge_attempt(Step("train", "true"), record, mock.Mock(), state, facts)
    assert record.verdict is not None
    assert record.verdict.reason == "instance 1 (node-1): its agent was killed from outside the run"
    judge_attempt(Step("train", "true"), record, mock.Mock(), replace(state, broken=""), facts)
    assert record.verdict.reason == "ended by SIGKILL"
