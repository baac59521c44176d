"""Trainings that end, fail or are evicted while a checkpoint is being written."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime.checkpoints.checkpoints import Checkpoints
from allranks.runtime.checkpoints.staging import StagingMemory
from allranks.runtime.checkpoints.writing import Writer
from allranks.runtime.clean_exit import Evicted
from allranks.runtime.ranks.ranks import Ranks

pytestmark = pytest.mark.slow


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if (path / "manifest.json").exists())


def test_an_eviction_completes_the_save_in_progress_and_then_its_own(
    alone: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, go_on = threading.Event(), threading.Event()
    write = Writer.write_data

    def slow(*arguments: Any) -> Any:
        writing.set()
        assert go_on.wait(60)
        return write(*arguments)

    monkeypatch.setattr(Writer, "write_data", slow)
    checkpoints = Checkpoints(tmp_path, alone, {"model": torch.nn.Linear(2, 2)}, every_steps=5)
    checkpoints.save_if_due(5)
    assert writing.wait(60)
    assert names(tmp_path) == []
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Timer(0.1, go_on.set).start()
    with pytest.raises(Evicted):
        checkpoints.save_if_due(6)
    assert names(tmp_path) == ["step_000000005", "step_000000006"]


def test_a_copy_that_fails_fails_the_save(alone: Ranks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise MemoryError("no memory on the device")

    monkeypatch.setattr(StagingMemory, "_copied", lambda _: fail)
    checkpoints = Checkpoints(tmp_path, alone, {"model": torch.nn.Linear(2, 2)})
    with pytest.raises(InputError, match="rank 0: no memory on the device"):
        checkpoints.save(1)


def test_the_end_of_a_training_completes_its_last_checkpoint(start: Callable, tmp_path: Path) -> None:
    ended = start("end_saving.py", tmp_path / "saved", "exit", distribution=PyTorch(2)).wait()
    assert [rank.code for rank in ended] == [0, 0], ended
    assert names(tmp_path / "saved") == ["step_000000001", "step_000000002"]


def test_a_failure_leaves_no_half_checkpoint(start: Callable, tmp_path: Path) -> None:
    ended = start("end_saving.py", tmp_path / "saved", "raise", distribution=PyTorch(2)).wait()
    assert [rank.code for rank in ended] == [1, 1], ended
    assert names(tmp_path / "saved") == ["step_000000001"]
    resumed = start("end_saving.py", tmp_path / "saved", "return", distribution=PyTorch(2)).wait()
    assert [rank.code for rank in resumed] == [0, 0], resumed
    assert resumed[1].stdout == "loaded 1 1.0\n"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("disk in between", "rank 1: [Errno 28] No space left on device"),
        ("elsewhere", ".distcp of another rank, which rank 0 does not see"),
    ],
)
def test_a_file_that_cannot_be_written_ends_all_with_one_message(
    start: Callable, tmp_path: Path, fault: str, message: str
) -> None:
    ended = start("end_saving.py", tmp_path / "saved", fault, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in ended] == [2, 2], ended
    for rank in ended:
        assert message in rank.stderr
    assert names(tmp_path / "saved") == ["step_000000001"]
