"""The executions of a resumed run, and the attempts of its steps."""

from pathlib import Path

from allranks.history import records
from allranks.history.formatting import elapsed
from allranks.history.observer import Observer
from allranks.history.page.items import items_of
from allranks.history.page.timeline import Block, timeline
from allranks.history.recorder import RunRecorder
from allranks.history.records import Execution, RunRecord, Status
from allranks.history.store import Store
from run_records import BEGIN, make_ranks, make_run, make_step

HOUR = 3600.0


def failed() -> RunRecord:
    """A run whose only step failed after 10 seconds."""
    step = make_step("train", status=Status.FAILED, started=BEGIN + 1, ended=BEGIN + 10)
    run = make_run(step, status=Status.FAILED)
    run.created, run.ended = BEGIN, BEGIN + 10
    run.executions = [Execution(BEGIN, BEGIN + 10)]
    step.attempts = records.attempts_of(step)
    return run


def resumed() -> RunRecord:
    """The same run, resumed after five hours, for 20 seconds."""
    run, again = failed(), BEGIN + 5 * HOUR
    (step,) = run.steps
    step.attempt, step.status, step.ended = 1, Status.NOT_STARTED, None
    run.ended, run.status = None, Status.RUNNING
    records.begin_execution(run, again)
    step.status, step.started, step.ended = Status.COMPLETED, again + 1, again + 20
    run.ended, run.status = again + 20, Status.COMPLETED
    records.end_execution(run)
    return run


def test_the_duration_of_a_resumed_run_has_no_idle_time() -> None:
    run = resumed()
    assert elapsed(run, BEGIN + 9 * HOUR) == 30
    assert records.pauses(run, BEGIN + 9 * HOUR) == [(BEGIN + 10, BEGIN + 5 * HOUR)]


def test_the_timeline_shows_the_attempt_before_the_run_was_resumed() -> None:
    run = resumed()
    drawn = timeline(run, BEGIN + 9 * HOUR, items_of(run.steps))
    assert drawn is not None
    (block,) = drawn.parts
    assert isinstance(block, Block)
    (row,) = block.rows
    (earlier,) = row.earlier
    assert row.bar is not None
    assert "attempt 1 · Failed · 9.0 s" in earlier.title
    assert "attempt 2 · Completed" in row.bar.title
    assert earlier.x + earlier.width <= row.bar.x
    assert [pause.label for pause in drawn.pauses] == ["did not run for 4 h 59 min"]


def test_what_a_killed_engine_left_open_ends_with_the_last_sign_of_life() -> None:
    step = make_step("train", status=Status.NOT_STARTED, started=BEGIN + 1, ended=None, attempt=1)
    step.ranks = make_ranks(1, 2)
    for rank in step.ranks:
        rank.started, rank.ended = BEGIN + 2, BEGIN + 30
    run = make_run(step, status=Status.RUNNING)
    run.created, run.ended, run.executions = BEGIN, None, [Execution(BEGIN)]
    assert records.begin_execution(run, BEGIN + HOUR) == [step]
    assert run.executions == [Execution(BEGIN, BEGIN + 30), Execution(BEGIN + HOUR)]
    (attempt,) = step.attempts
    assert (attempt.number, attempt.status, attempt.ended) == (0, Status.INTERRUPTED, BEGIN + 30)
    assert records.begin_execution(run, BEGIN + 2 * HOUR) == []


def test_the_recorder_saves_executions_and_attempts_that_did_not_complete(tmp_path: Path) -> None:
    step = make_step("train", status=Status.NOT_STARTED, started=None, ended=None)
    run = make_run(step, status=Status.RUNNING)
    run.ended = None
    with Store(tmp_path / "allranks.db") as store:
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        recorder.started()
        step.status, step.started, step.ended = Status.FAILED, BEGIN + 1, BEGIN + 2
        recorder.changed(step)
        step.attempt, step.status, step.started, step.ended = 1, Status.COMPLETED, BEGIN + 3, BEGIN + 4
        recorder.changed(step)
        run.status, run.ended = Status.COMPLETED, BEGIN + 5
        recorder.ended()
        stored = store.run(run.id)
    assert [(each.number, each.status) for each in stored.steps[0].attempts] == [(0, Status.FAILED)]
    assert [each.ended for each in stored.executions] == [BEGIN + 5]
