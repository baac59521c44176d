"""Copies of a step's files: none shares its content with the original, and nothing of the user's is moved."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.local.attempt import copying
from allranks.local.attempt.copying import copy
from allranks.plan.file_tree import StoppedError
from allranks.plan.graph import Step
from allranks.plan.ports import Input, Output
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


@pytest.mark.parametrize("move", [False, True])
def test_content_modes_and_times_are_the_same(tmp_path: Path, source: Path, move: bool) -> None:
    inode = (source / "deep" / "file").stat().st_ino
    assert copy(source, tmp_path / "target", move=move) == []
    made = tmp_path / "target" / "deep" / "file"
    assert made.read_bytes() == CONTENT
    status = made.stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o640, 1e9)
    assert made.parent.stat().st_mtime == 2e9
    assert (tmp_path / "target" / "empty").read_bytes() == b""
    assert (status.st_ino == inode) is move
    assert (source / "deep" / "file").exists() is not move


def test_a_change_of_a_copy_does_not_alter_the_original(tmp_path: Path, source: Path) -> None:
    copy(source, tmp_path / "target")
    made = tmp_path / "target" / "deep" / "file"
    with made.open("r+b") as file:
        file.write(b"changed")
    assert (source / "deep" / "file").read_bytes() == CONTENT
    with (source / "deep" / "file").open("r+b") as file:
        file.write(b"CHANGED")
    assert made.read_bytes() == b"changed" + CONTENT[7:]


def test_a_file_with_another_name_is_not_moved(tmp_path: Path, source: Path) -> None:
    """A change through the other name would otherwise alter the saved output."""
    os.link(source / "deep" / "file", tmp_path / "other name")
    copy(source, tmp_path / "target", move=True)
    (tmp_path / "other name").write_bytes(b"changed")
    assert (tmp_path / "target" / "deep" / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("what", ["file", "folder", "folder in a folder", "the source itself"])
def test_what_a_link_leads_to_stays_where_it_is(tmp_path: Path, source: Path, what: str) -> None:
    mine = tmp_path / "mine"
    (mine / "inner").mkdir(parents=True)
    (mine / "inner" / "file").write_bytes(CONTENT)
    if what == "file":
        (source / "link").symlink_to(mine / "inner" / "file")
    elif what == "the source itself":
        source = tmp_path / "link"
        source.symlink_to(mine)
    else:
        (source / "link").symlink_to(mine if what == "folder in a folder" else mine / "inner")
    copy(source, tmp_path / "target", move=True)
    assert (mine / "inner" / "file").read_bytes() == CONTENT
    copies = [path for path in (tmp_path / "target").rglob("*") if path.is_file() and path.stat().st_size]
    assert copies
    assert all(path.read_bytes() == CONTENT and not path.is_symlink() for path in copies)


def test_a_link_at_the_target_is_written_through(tmp_path: Path, source: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "empty").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("old")
    copy(source, tmp_path / "target", move=True)
    assert (tmp_path / "target" / "empty").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == ""


def test_files_of_another_file_system_are_copied(tmp_path: Path, source: Path) -> None:
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("/dev/shm is not another file system")
    target = Path("/dev/shm") / f"allranks-test-{os.getpid()}"
    try:
        copy(source / "deep" / "file", target, move=True)
        assert target.read_bytes() == CONTENT
    finally:
        target.unlink(missing_ok=True)


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


def test_an_uploaded_output_is_independent_of_the_input_that_the_step_linked(tmp_path: Path, run_steps) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(CONTENT)
    step = Step(
        "link",
        "ln ${{inputs.data}} ${{outputs.out}}/linked || cp ${{inputs.data}} ${{outputs.out}}/linked",
        inputs=(Input("data", "uri_file", PathValue(str(data)), mode="rw_mount"),),
        outputs=(Output("out", "uri_folder", "upload"),),
    )
    record = run_steps(step)
    assert record.status is Status.COMPLETED
    data.write_bytes(b"changed")
    assert Path(record.steps[0].outputs[0].path, "linked").read_bytes() == CONTENT


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
