"""SIGABRT of a rank: forgiven only where the rank itself reported before that its work was done."""

import sys
from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.local.boot import SOURCE
from allranks.local.launchers.launching import read_events
from allranks.plan.graph import Step

ABORT = "terminate called without an active exception"

FINISH = "from allranks.contract import report; report.append(report.Finished())"
DIE = f"import os, sys; print('{ABORT}', file=sys.stderr, flush=True); os.abort()"


def python(code: str) -> str:
    return f'PYTHONPATH={SOURCE} {sys.executable} -c "{code}"'


def test_an_abort_after_the_reported_end_of_the_work_is_forgiven(kind: str, run_steps) -> None:
    record = run_steps(Step("train", python(f"{FINISH}; {DIE}")), instances=kind)
    assert record.status is Status.COMPLETED
    assert "ignored" in record.step("train").notes[0]


def test_a_rank_that_mpirun_starts_tells_its_process_id_too(tmp_path: Path) -> None:
    """By it the report of the rank is known from that of another process."""
    (tmp_path / "events_file").write_text('{"event": "started", "rank": 1, "pid": 7, "time": 1.0}\n')
    (event,), _ = read_events(tmp_path / "events_file")
    assert (event.program, event.pid) == ("rank 1", 7)


@pytest.mark.parametrize(
    "command",
    [
        python(DIE),
        f"echo work; echo '{ABORT}' >&2; kill -ABRT $$",
        # Another process of the rank has finished its work.
        f"{python(FINISH)}; {python(DIE)}; exit $?",
        f"{python(FINISH)}; exec env {python(DIE)}",
    ],
    ids=["python", "shell", "another_process", "another_process_then_exec"],
)
def test_an_abort_without_that_report_is_a_failure_that_says_how_to_avoid_it(run_steps, command: str) -> None:
    record = run_steps(Step("train", command))
    assert record.status is Status.FAILED
    assert record.verdict.signal == "SIGABRT" or record.verdict.exit_code == 134
    assert "python -m allranks.runtime" in record.verdict.advice


def test_another_abort_after_the_work_is_a_failure(run_steps) -> None:
    record = run_steps(Step("train", python(f"{FINISH}; import os; print('{ABORT}\\na\\nb', flush=True); os.abort()")))
    assert (record.status, record.verdict.signal) == (Status.FAILED, "SIGABRT")
