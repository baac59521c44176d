"""The periods in which engines executed a run, and the earlier attempts of its steps.

A run that is resumed has several periods. Between them it did not run, so its duration is their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from allranks.history.records import AttemptRecord, Execution, RankRecord, RunRecord, Status, StepRecord


def begin(run: RunRecord, now: float) -> list[StepRecord]:
    """Record that an engine begins to execute the run. Return the steps whose attempts have changed.

    If the previous engine was killed, its execution and its running attempts have no recorded end: they end at the last
    moment in the run's record.
    """
    last = last_moment(run)
    if not run.executions:
        # A record of an earlier version, if something has run already.
        run.executions = [Execution(run.created, last)] if last > run.created else []
    elif run.executions[-1].ended is None:
        run.executions[-1] = Execution(run.executions[-1].started, max(last, run.executions[-1].started))
    run.executions.append(Execution(now if run.executions else run.created or now))
    return [step for step in run.steps if _add_killed(step, last)]


def end(run: RunRecord) -> None:
    """Record the end of the current execution, which is that of the run."""
    if run.executions and run.executions[-1].ended is None:
        run.executions[-1] = Execution(run.executions[-1].started, run.ended)


def periods(run: RunRecord, now: float) -> list[tuple[float, float]]:
    """Return the start and the end of each execution. One that has not ended lasts until `now`, or until the last
    recorded moment if the engine was killed."""
    if not run.executions:
        return [(run.created, _end(run, now))] if run.created else []
    return [
        (each.started, max(each.ended if each.ended is not None else _end(run, now), each.started))
        for each in run.executions
    ]


def pauses(run: RunRecord, now: float) -> list[tuple[float, float]]:
    """Return the start and the end of each time between two executions."""
    executed = periods(run, now)
    return [(before[1], after[0]) for before, after in pairwise(executed) if after[0] > before[1]]


def last_moment(run: RunRecord) -> float:
    """Return the last moment at which something is known to have happened in the run; at least its creation."""
    moments = [run.created, *(point.time for step in run.steps for curve in step.metrics.values() for point in curve)]
    for step in run.steps:
        records: list[StepRecord | RankRecord] = [step, *step.ranks]
        for record in records:
            moments += [moment for moment in (record.started, record.ended) if moment is not None]
        moments += [moment for attempt in step.attempts for moment in (attempt.started, attempt.ended)]
    return max(moments)


def attempts_of(step: StepRecord) -> list[AttemptRecord]:
    """Return the attempts of a step whose last attempt has ended, including that one."""
    if step.kind != "command" or not step.started or step.reused_from or _is_known(step, step.attempt):
        return step.attempts
    ended = step.ended if step.ended is not None else step.started
    return [*step.attempts, AttemptRecord(step.attempt, step.status, step.started, ended)]


def earlier_attempts(step: StepRecord) -> Sequence[AttemptRecord]:
    """Return the attempts before the one that the step's own fields describe."""
    has_started = step.status is not Status.NOT_STARTED
    return [attempt for attempt in step.attempts if not (has_started and attempt.started == step.started)]


def _add_killed(step: StepRecord, last: float) -> bool:
    """Add the attempt that was running when the engine was killed. The step counts the next one already."""
    number = step.attempt - 1
    if step.status is not Status.NOT_STARTED or number < 0 or not step.started or _is_known(step, number):
        return False
    moments = [rank.ended for rank in step.ranks if rank.ended is not None]
    ended = max(moments) if len(moments) == len(step.ranks) and moments else last
    step.attempts = [*step.attempts, AttemptRecord(number, Status.INTERRUPTED, step.started, ended)]
    return True


def _is_known(step: StepRecord, number: int) -> bool:
    return any(attempt.number == number for attempt in step.attempts)


def _end(run: RunRecord, now: float) -> float:
    if run.ended is not None:
        return run.ended
    return last_moment(run) if run.status.ended else now
