"""A rank that has raised and does not end is killed with its launcher. How that ends does not hide the exception."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from allranks.contract import report
from allranks.contract.mpi import Mpi
from allranks.history.records import RankRecord, StepRecord
from allranks.local.attempt import monitor
from allranks.local.attempt.start import Start
from allranks.local.instances.supervisor import Event
from allranks.local.launchers.launching import LaunchedPrograms
from allranks.local.options import Options
from allranks.plan.graph import Step


class Instance:
    """Stands for the supervisor of an instance whose mpirun ends before the event of its rank arrives."""

    def __init__(self, events: asyncio.Queue[Event | None]) -> None:
        self.events = events
        self.signals: list[int] = []

    async def signal(self, agent: str, number: int) -> None:
        self.signals.append(number)
        if number == signal.SIGKILL:
            self.events.put_nowait(Event("exited", agent, 3.0, "mpirun", code=-number))
            asyncio.get_running_loop().call_later(3 * monitor.POLL, self.end, agent, number)

    def end(self, agent: str, number: int) -> None:
        self.events.put_nowait(Event("exited", agent, 4.0, "rank 0", code=-number))
        self.events.put_nowait(Event("gone", agent, 4.0))


def test_the_exception_stays_the_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "RAISED", 0.0)
    step = Step("train", "python train.py", distribution=Mpi(1))
    (tmp_path / "log").touch()
    record = StepRecord("train", "", "", "mpi", 1, 1, ranks=[RankRecord(0, 0, 0, "node", log=str(tmp_path / "log"))])
    failed = report.failure_of(ValueError("bad batch"))
    report.append(failed, {report.VARIABLE: str(tmp_path / "report")})
    launching = LaunchedPrograms([[]], frozenset({"mpirun"}))
    start = Start(launching, tmp_path / "mpi_log", tmp_path, [], ["node"], None)

    async def monitored() -> list[int]:
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        instance = Instance(events)
        events.put_nowait(Event("forked", "node", 1.0))
        events.put_nowait(Event("started", "node", 1.0, "mpirun", pid=2))
        events.put_nowait(Event("started", "node", 1.0, "rank 0", pid=failed.pid))
        reports = {0: tmp_path / "report"}
        await monitor.AttemptMonitor(
            step, record, {"node": "instance 0"}, events, start, reports, Options(), MagicMock(), instance,
            held=False, evicting=bool, stopping=bool,
        ).until_gone()  # fmt: skip
        return instance.signals

    assert asyncio.run(monitored()) == [signal.SIGKILL]
    assert record.verdict is not None
    assert (record.verdict.rank, record.verdict.reason) == (0, "ValueError: bad batch")
