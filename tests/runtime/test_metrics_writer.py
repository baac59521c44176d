from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from allranks.contract import report
from allranks.contract.pytorch import PyTorch
from allranks.contract.report import Progress
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.ranks.ranks import Ranks


@pytest.fixture
def reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[report.Event]]:
    """What is in the report file."""
    monkeypatch.setenv(report.VARIABLE, str(tmp_path / "report"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return lambda: report.read(tmp_path / "report")[0]


@pytest.fixture
def metrics(reported: Callable[[], list[report.Event]]) -> Iterator[Metrics]:
    metrics = Metrics(is_main=True)
    yield metrics
    metrics.close("FINISHED")
    assert not [thread for thread in threading.enumerate() if thread.name == "allranks-metrics"]


def test_values_are_those_of_the_call(metrics: Metrics, reported: Callable[[], list[report.Event]]) -> None:
    loss = torch.tensor(3.0, requires_grad=True)
    total = torch.tensor([1.5])
    metrics.log({"loss": loss * 2, "total": total, "count": 7}, step=1, total=9, epoch=0)
    total.zero_()
    metrics.log({"total": total}, step=2)
    metrics.close("FINISHED")
    first, second = reported()
    assert isinstance(first, Progress)
    assert isinstance(second, Progress)
    assert (first.step, first.total, first.epoch) == (1, 9, 0)
    assert (dict(first.metrics), dict(second.metrics)) == ({"loss": 6, "total": 1.5, "count": 7}, {"total": 0})
    assert first.time <= second.time


def test_written_without_a_close(
    metrics: Metrics, reported: Callable[[], list[report.Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = threading.Event()
    append_all = report.append_all
    monkeypatch.setattr(report, "append_all", lambda events: (append_all(events), written.set()))
    metrics.log({"loss": 1}, step=1)
    assert written.wait(60)
    assert len(reported()) == 1


def test_logged_after_the_close(metrics: Metrics, reported: Callable[[], list[report.Event]]) -> None:
    metrics.log({"loss": 1}, step=1)
    metrics.close("FINISHED")
    metrics.log({"loss": 1}, step=2)
    assert len(reported()) == 2


def test_a_value_that_is_not_a_number_fails_where_it_is_logged(metrics: Metrics) -> None:
    with pytest.raises((RuntimeError, ValueError), match="element"):
        metrics.log({"loss": torch.ones(2)}, step=1)


def test_a_value_that_is_never_computed_is_left_out(
    metrics: Metrics, reported: Callable[[], list[report.Event]]
) -> None:
    class Lost:
        def snapshot(self) -> Lost:
            return self

        def __float__(self) -> float:
            raise RuntimeError("Connection closed by peer")

    metrics.log({"mean": Lost(), "rate": 0.5}, step=1)
    metrics.close("FAILED")
    (progress,) = reported()
    assert isinstance(progress, Progress)
    assert progress.metrics == {"rate": 0.5}


def test_other_ranks_do_nothing(reported: Callable[[], list[report.Event]]) -> None:
    metrics = Metrics(is_main=False)
    before = threading.active_count()
    metrics.log({"loss": torch.ones(2)}, step=1)  # not even looked at
    assert threading.active_count() == before
    metrics.close("FINISHED")
    assert reported() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "code"), [("pass", 0), ("raise ValueError('no more')", 1), ("import sys; sys.exit(3)", 3)]
)
def test_written_before_an_exit_without_a_close(tmp_path: Path, end: str, code: int) -> None:
    """As from a library's callback: nobody closes the metrics."""
    program = f"""
from allranks.runtime import Metrics
metrics = Metrics(is_main=True)
for step in range(1000):
    metrics.log({{"loss": 1 / (step + 1)}}, step=step)
{end}
"""
    environment = {report.VARIABLE: str(tmp_path / "report"), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, check=False, timeout=100)
    assert ended.returncode == code
    assert [event.step for event in report.read(tmp_path / "report")[0]] == list(range(1000))  # type: ignore[union-attr]


def test_a_mean_alone(alone: Ranks) -> None:
    value = torch.tensor([4.0], requires_grad=True)
    mean = alone.mean(value)
    with torch.no_grad():
        value.zero_()
    assert float(mean) == mean.item() == 4
    assert f"{mean:.1f}" == "4.0"
    assert repr(mean) == "RankMean(4.0)"
    assert float(alone.mean(3)) == 3
    assert alone.mean(torch.tensor(1.0, dtype=torch.bfloat16))._total.dtype == torch.float32, "a sum would be rounded"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["finish", "fail", "evict"])
def test_means_of_two_ranks_are_written_however_they_end(start: Callable, how: str) -> None:
    started = start("log_means.py", how, distribution=PyTorch(2))
    ended = started.wait()
    assert [rank.code for rank in ended] == {"finish": [0, 0], "fail": [1, 1], "evict": [143, 143]}[how], ended
    found = {progress.step: dict(progress.metrics) for progress in ended[0].of(report.Progress)}
    last = max(found)
    assert last in {"finish": (200,), "fail": (100,), "evict": (100, 101)}[how]
    assert found == {step: {"mean": step + 0.5, "count": 2 * step} for step in range(1, last + 1)}
    assert ended[1].of(report.Progress) == []


@pytest.mark.slow
def test_a_killed_rank_has_written_all_but_the_last_second(start: Callable) -> None:
    started = start("log_means.py", "wait", distribution=PyTorch(2))
    first = started.processes[0]
    assert first.stdin is None or first.poll() is None
    ended = started.wait()
    assert [rank.code for rank in ended] == [-signal.SIGKILL] * 2
    assert len(ended[0].of(report.Progress)) == 200


def test_metrics_are_not_read_where_they_are_logged(alone: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[float] = []

    class Mean:
        def snapshot(self) -> Mean:
            return self

        def __float__(self) -> float:
            read.append(1.0)
            return 1.0

    assert alone.metrics._writer is not None
    monkeypatch.setattr(alone.metrics._writer, "_work", alone.metrics._writer._closing.wait)
    alone.metrics.log({"loss": Mean()}, step=1)
    assert read == []
    alone.metrics.close("FINISHED")
