"""Copies of a step's files: none shares its content with the original."""

import os
import threading
from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.local.attempt import copying
from allranks.local.attempt.copying import copy
from allranks.plan.file_tree import StoppedError
from allranks.plan.graph import Step
from allranks.plan.ports import Input
from allranks.plan.ports import Path as PathValue

CONTENT = os.urandom(3_000_000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").write_bytes(CONTENT)
    (folder / "empty").touch()
    (folder / "deep" / "file").chmod(0o640)
    os.utime(folder / "deep" / "file", (1e9, 1e9))
    os.utime(folder / "deep", (2e9, 2e9))
    return folder


def test_content_modes_and_times_are_the_same(tmp_path: Path, source: Path) -> None:
    assert copy(source, tmp_path / "target") == []
    made = tmp_path / "target" / "deep" / "file"
    assert made.read_bytes() == CONTENT
    status = made.stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o640, 1e9)
    assert made.parent.stat().st_mtime == 2e9
    assert (tmp_path / "target" / "empty").read_bytes() == b""


def test_a_change_of_a_copy_does_not_alter_the_original(tmp_path: Path, source: Path) -> None:
    copy(source, tmp_path / "target")
    made = tmp_path / "target" / "deep" / "file"
    with made.open("r+b") as file:
        file.write(b"changed")
    assert (source / "deep" / "file").read_bytes() == CONTENT
    with (source / "deep" / "file").open("r+b") as file:
        file.write(b"CHANGED")
    assert made.read_bytes() == b"changed" + CONTENT[7:]


def test_what_links_lead_to_is_copied(tmp_path: Path, source: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_bytes(CONTENT)
    (source / "folder").symlink_to(mine)
    (source / "deep" / "link").symlink_to(mine / "file")
    copy(source, tmp_path / "target")
    for name in ("folder/file", "deep/link"):
        path = tmp_path / "target" / name
        assert path.read_bytes() == CONTENT
        assert not path.is_symlink()


def test_a_link_at_the_target_is_written_through(tmp_path: Path, source: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "empty").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("old")
    copy(source, tmp_path / "target")
    assert (tmp_path / "target" / "empty").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == ""


def test_a_file_whose_size_the_kernel_does_not_tell(tmp_path: Path) -> None:
    copy(Path("/proc/version"), tmp_path / "version")
    assert (tmp_path / "version").read_bytes() == Path("/proc/version").read_bytes()


def test_it_works_without_the_help_of_the_kernel(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "copy_file_range", raising=False)
    copy(source, tmp_path / "target")
    assert (tmp_path / "target" / "deep" / "file").read_bytes() == CONTENT


def test_it_stops_within_a_file(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PIECE", 1 << 16)
    stop = threading.Event()
    copy_file_range = os.copy_file_range

    def copy_one(*arguments: int) -> int:
        stop.set()
        return copy_file_range(*arguments)

    monkeypatch.setattr(os, "copy_file_range", copy_one)
    with pytest.raises(StoppedError):
        copy(source / "deep" / "file", tmp_path / "target", stop)
    assert (tmp_path / "target").stat().st_size < len(CONTENT)


def test_a_downloaded_input_may_be_written_to(tmp_path: Path, run_steps) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(CONTENT)
    step = Step(
        "write",
        "echo more >> ${{inputs.data}}",
        inputs=(Input("data", "uri_file", PathValue(str(data)), mode="download"),),
    )
    assert run_steps(step).status is Status.COMPLETED
    assert data.read_bytes() == CONTENT
