"""A tracker that hangs, ends, or answers with nonsense costs its step a note, never its result."""

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from allranks.history.records import Status
from allranks.local.tracking import client
from allranks.local.tracking.client import Tracking, TrackingError
from allranks.plan.graph import Step
from allranks.workspace import Workspace

PYTHON = (sys.executable, "-I", "-S", "-c")
HANG = "import time\nwhile True: time.sleep(1000)"
ANSWER = "import json, sys\nrequest = json.loads(sys.stdin.readline())\n"

FAULTS = {
    "hangs": HANG,
    "reads and hangs": ANSWER + HANG,
    "ends": "",
    "is killed": ANSWER + "import os; os.kill(os.getpid(), 9)",
    "cuts an answer off": ANSWER + "print('{\"run_id\": \"1', end='')",
    "answers with a line that is cut off": ANSWER + 'print(\'{"run_id": "1\', flush=True)\n' + HANG,
    "answers with bytes": ANSWER + "sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()\n" + HANG,
    "does not end": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {15, 1, 2})\n" + HANG,
}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(client, "CLOSE_SECONDS", 0.1)


def ask(workspace: Workspace) -> None:
    async def create() -> None:
        tracking = Tracking(workspace)
        tracking.start()
        try:
            await tracking.create("experiment", "run", {})
        finally:
            await tracking.close()

    asyncio.run(create())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_fails(fault: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "command", lambda *_: (*PYTHON, FAULTS[fault]))
    before = set(psutil.Process().children())
    with pytest.raises(TrackingError, match=r"the MLflow process") as failed:
        ask(workspace)
    assert str(failed.value).endswith("it was ended by SIGKILL") is (fault == "is killed")
    assert set(psutil.Process().children()) == before


def test_a_process_that_cannot_start_is_told(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "command", lambda *_: ("/no/such/program",))
    with pytest.raises(TrackingError, match="No such file"):
        ask(workspace)


def test_the_step_completes_with_a_note(run_steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is tracked, by a process that hangs."""
    monkeypatch.setattr("allranks.local.tracking.client.find_spec", lambda _: object())
    monkeypatch.setattr(client, "command", lambda *_: (*PYTHON, HANG))
    record = run_steps(Step("a", "echo python"), Step("b", "echo python"), track=True)
    assert record.status is Status.COMPLETED
    for step in record.steps:
        (note,) = step.notes
        assert note.startswith("MLflow gets no metrics of this step: the MLflow process")


LATE = (
    "import json, sys, time\n"
    "for line in sys.stdin:\n"
    "    request = json.loads(line)\n"
    "    open(request['tags']['read'], 'w')\n"
    "    time.sleep(0.5)\n"
    "    print(json.dumps({'run_id': request['name']}), flush=True)\n"
)


def test_a_late_answer_is_not_taken_for_that_of_the_next_request(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(client, "command", lambda *_: (*PYTHON, LATE))
    read = tmp_path / "read"

    monkeypatch.setattr(client, "REQUEST_SECONDS", 60.0)

    async def second() -> str:
        tracking = Tracking(workspace)
        given_up = asyncio.create_task(tracking.create("experiment", "first", {"read": str(read)}))
        while not read.exists():
            await asyncio.sleep(0.01)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        try:
            return await tracking.create("experiment", "second", {"read": str(read)})
        finally:
            await tracking.close()

    assert asyncio.run(second()) == "second"
