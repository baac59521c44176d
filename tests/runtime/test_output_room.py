"""Disk space of outputs: what is needed, what is refused on every rank, and a disk that is full later."""

import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from allranks.errors import InputError
from allranks.runtime.output_room import Content, full_output_refused, outputs_of_training, require_room

FREE = 10_000


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Sets the total and the free bytes that every file system reports."""

    def report(total: int, free: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=total, free=free))

    report(100_000, FREE)
    return report


def test_the_checkpoints_are_those_that_are_kept_and_the_one_that_is_written() -> None:
    for best, count in ((False, 3), (True, 4)):
        _, checkpoints = outputs_of_training(Path("model"), 1, Path("checkpoints"), 1, 2, best=best)
        assert checkpoints.count == count


def test_outputs_on_one_disk_share_its_space(tmp_path: Path, disk: Callable[[int, int], None]) -> None:
    model = Content("output model", tmp_path / "new/model", FREE // 4)
    require_room([model, Content("output checkpoints", tmp_path / "checkpoints", FREE // 4, 3)])
    with pytest.raises(InputError) as raised:
        require_room([model, Content("output checkpoints", tmp_path / "checkpoints", FREE // 4 + 1, 3, fix="a fix")])
    assert [problem.where for problem in raised.value.problems] == ["output model", "output checkpoints"]
    checkpoints = raised.value.problems[1]
    assert checkpoints.found == f"9.8 KiB free in {tmp_path}"
    assert checkpoints.expected.startswith("7.3 KiB (3 of 2.4 KiB at a time), and 9.8 KiB with")
    assert checkpoints.fix == "a fix"


def test_what_an_earlier_attempt_left_needs_no_space_again(tmp_path: Path, disk: Callable[[int, int], None]) -> None:
    (tmp_path / "checkpoints/step_000000001").mkdir(parents=True)
    for number in range(2):
        (tmp_path / f"checkpoints/step_000000001/{number}").write_bytes(bytes(FREE))
    checkpoints = Content("output checkpoints", tmp_path / "checkpoints", FREE, 3)
    require_room([checkpoints])
    disk(100_000, FREE - 1)  # the next one is written before the oldest is removed
    with pytest.raises(InputError, match="output checkpoints"):
        require_room([checkpoints])
    require_room([Content("output model", tmp_path / "checkpoints", 2 * FREE)])  # one model replaces the other


def test_a_file_system_that_does_not_report_its_size_is_not_checked(
    tmp_path: Path, disk: Callable[[int, int], None]
) -> None:
    disk(0, 0)
    require_room([Content("output model", tmp_path, 1)])


class _Ranks:
    """A rank that receives what rank 0 has sent."""

    def __init__(self, is_main: bool, sent: list[Any]) -> None:
        self.is_main, self._sent = is_main, sent

    def broadcast(self, value: Any) -> Any:
        if self.is_main:
            self._sent.append(value)
        return self._sent[-1]


def test_every_rank_raises_what_rank_0_found(tmp_path: Path, disk: Callable[[int, int], None]) -> None:
    sent: list[Any] = []
    messages = []
    for rank in range(3):
        if rank:
            disk(100_000, 100_000)  # only rank 0's disk counts
        with pytest.raises(InputError) as raised:
            require_room([Content("output model", tmp_path, FREE + 1)], _Ranks(rank == 0, sent))
        messages.append(str(raised.value))
    assert len(set(messages)) == 1
    require_room([Content("output model", tmp_path, FREE)], _Ranks(True, sent))


def _write(folder: Path) -> None:
    (folder / "file").write_bytes(b"x")


def _copy(folder: Path) -> None:
    source = folder / "source"
    source.mkdir()
    (source / "file").write_bytes(b"x")
    shutil.copytree(source, folder, dirs_exist_ok=True)


def _wrapped(folder: Path) -> None:
    try:
        _write(folder)
    except OSError:
        raise RuntimeError("the library failed") from None


@pytest.mark.parametrize("write", [_write, _copy, _wrapped])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux's full device")
def test_a_disk_that_is_full_is_one_message(tmp_path: Path, write: Callable[[Path], None]) -> None:
    (tmp_path / "file").symlink_to("/dev/full")
    message = f"^output model: no space left while writing to {tmp_path}"
    with pytest.raises(InputError, match=message), full_output_refused("output model", tmp_path):
        write(tmp_path)


def test_torch_s_own_error_of_a_full_disk_is_the_same_message(tmp_path: Path) -> None:
    """Here a file must not become larger: as on a full disk, less is written than is passed on."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        with pytest.raises(InputError) as error, full_output_refused("output model", tmp_path):
            torch.save(torch.zeros(10**6), tmp_path / "model.pt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "unexpected pos" in str(error.value.__cause__)
    assert f"output model: no space left while writing to {tmp_path}" in str(error.value)


def test_other_errors_remain(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), full_output_refused("output model", tmp_path):
        (tmp_path / "none/file").write_bytes(b"x")
