import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime.data.staging import stage


@pytest.fixture(autouse=True)
def local_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The instance's temporary folder."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.delenv("AZUREML_RUN_ID", raising=False)
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "mounted" / "digits"
    (folder / "train" / "empty").mkdir(parents=True)
    (folder / "train" / "a.npy").write_bytes(b"a" * 1000)
    (folder / "b.json").write_text("{}")
    (folder / "link.json").symlink_to("b.json")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_folder(source: Path, local_disk: Path) -> None:
    copy = stage(source)
    assert copy.name == "digits"
    assert local_disk in copy.parents
    assert files(copy) == files(source)
    assert not (copy / "link.json").is_symlink()


def test_file(source: Path) -> None:
    copy = stage(source / "b.json")
    assert copy.name == "b.json"
    assert copy.read_text() == "{}"
    assert copy != source / "b.json"


def test_the_same_content_is_copied_once(source: Path) -> None:
    first = stage(source)
    (first / "b.json").write_text("mine")
    assert stage(str(source)) == first
    assert (first / "b.json").read_text() == "mine"


def test_changed_content_is_copied_anew(source: Path) -> None:
    first = stage(source)
    (source / "b.json").write_text("[1]")
    second = stage(source)
    assert first != second
    assert (second / "b.json").read_text() == "[1]"


def test_every_job_has_its_copy(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = set()
    for job in ("first", "second"):
        monkeypatch.setenv("AZUREML_RUN_ID", job)
        copies.add(stage(source))
    assert len(copies) == 2


def test_nobody_else_may_read_it(source: Path, local_disk: Path) -> None:
    stage(source)
    (folder,) = local_disk.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing at"):
        stage(tmp_path / "missing")


def test_broken_link(source: Path) -> None:
    (source / "broken").symlink_to("nowhere")
    with pytest.raises(InputError, match="broken"):
        stage(source)


def test_no_room(source: Path, local_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(InputError, match="no room for a copy of 1,004 bytes"):
        stage(source)
    assert not [path for path in local_disk.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_ranks_of_an_instance_share_one_copy(start: Callable, source: Path, tmp_path: Path) -> None:
    log = tmp_path / "copied"
    ended = start("stage_input.py", source, log, distribution=PyTorch(3)).wait()
    assert [rank.code for rank in ended] == [0, 0, 0], ended
    assert len({rank.stdout for rank in ended}) == 1
    assert sorted(log.read_text().split()) == ["a.npy", "b.json", "link.json"]


def test_a_killed_copier_is_followed_by_another(start: Callable, source: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    first = start("stage_input.py", source, tmp_path / "copied", told)
    assert told.read_text().startswith("copying")
    with pytest.raises(TimeoutError, match="another rank has been copying"):
        stage(source, timeout_seconds=0.1)
    first.kill()
    assert files(stage(source)) == files(source)
