"""A rank that has raised and does not end is killed with its launcher. How that ends does not hide the exception."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from allranks.contract import report
from allranks.contract.mpi import Mpi
from allranks.history.records import RankRecord, StepRecord, Verdict
from allranks.local.attempt import lifecycle, monitor
from allranks.local.attempt.start import Start
from allranks.local.instances.supervisor import Event
from allranks.local.launchers.launching import LaunchedPrograms
from allranks.local.options import Options
from allranks.plan.graph import Step


class Instance:
    """Stands for the supervisor of an instance whose mpirun ends before the event of its rank arrives."""

    def __init__(self, events: asyncio.Queue[Event | None]) -> None:
        self.events = events

    async def signal(self, agent: str, number: int) -> None:
        if number == signal.SIGKILL:
            self.events.put_nowait(Event("exited", agent, 3.0, "mpirun", code=-number))
            asyncio.get_running_loop().call_later(3 * monitor.POLL, self.end, agent, number)

    def end(self, agent: str, number: int) -> None:
        self.events.put_nowait(Event("exited", agent, 4.0, "rank 0", code=-number))
        self.events.put_nowait(Event("gone", agent, 4.0))


def verdict_on(tmp_path: Path, ranks: int, events: Sequence[Event], error: str = "") -> Verdict:
    """Return the verdict on ranks of mpirun, of which rank 0 prints or reports an error, after these events."""
    step = Step("train", "python train.py", distribution=Mpi(ranks))
    logs = [tmp_path / f"log_{rank}" for rank in range(ranks)]
    for log in logs:
        log.touch()
    logs[0].write_text(error)
    records = [RankRecord(rank, 0, rank, "node", log=str(log)) for rank, log in enumerate(logs)]
    record = StepRecord("train", "", "", "mpi", 1, ranks, ranks=records)
    launching = LaunchedPrograms([[]], frozenset({"mpirun"}))
    start = Start(launching, tmp_path / "mpi_log", tmp_path, [], ["node"])

    async def monitored() -> None:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        for event in events:
            queue.put_nowait(event)
        reports = {rank: tmp_path / f"report_{rank}" for rank in range(ranks)}
        await monitor.AttemptMonitor(
            step, record, {"node": "instance 0"}, queue, start, reports, Options(), MagicMock(), Instance(queue),
            debugged=False, evicting=bool, stopping=bool,
        ).until_gone()  # fmt: skip

    asyncio.run(monitored())
    assert record.verdict is not None
    return record.verdict


STARTED = Event("forked", "node", 1.0), Event("started", "node", 1.0, "mpirun", pid=2)


def test_the_exception_stays_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "RAISED", 0.0)
    failed = report.failure_of(ValueError("bad batch"))
    report.append(failed, {report.VARIABLE: str(tmp_path / "report_0")})
    events = *STARTED, Event("started", "node", 1.0, "rank 0", pid=failed.pid)
    verdict = verdict_on(tmp_path, 1, events)
    assert (verdict.rank, verdict.reason) == (0, "ValueError: bad batch")


def test_a_rank_that_was_not_started_yet_is_not_what_the_others_lost(tmp_path: Path) -> None:
    ends = Event("exited", "node", 2.0, "rank 0", code=1), Event("exited", "node", 3.0, "mpirun", code=-9)
    events = *STARTED, Event("started", "node", 1.0, "rank 0", pid=3), *ends, Event("gone", "node", 4.0)
    error = "Traceback (most recent call last):\nConnectionResetError: Connection reset by peer\n"
    assert verdict_on(tmp_path, 2, events, error).reason == "mpirun was ended by SIGKILL"
