"""The saved digests of files: an unchanged file is read once, and every change is noticed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.local.attempt import digests as file_digests
from allranks.local.attempt.digests import SMALL, FileDigests
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan import digest, file_tree
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Output
from allranks.plan.ports import Path as PathValue
from allranks.workspace import Workspace

SIZE = SMALL + 1


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the digests of files that have just been written be saved."""
    monkeypatch.setattr(file_digests, "UNSETTLED", -1.0)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were opened."""
    opened: list[Path] = []
    open_file = file_tree.open_file

    def noting(path: Path) -> object:
        opened.append(path)
        return open_file(path)

    monkeypatch.setattr(file_tree, "open_file", noting)
    return opened


@pytest.fixture
def digests(tmp_path: Path) -> Iterator[FileDigests]:
    opened = FileDigests(tmp_path / "digests.db")
    yield opened
    opened.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "data.bin"
    file.write_bytes(b"a" * SIZE)
    return file


def _keep_times(data: Path) -> None:
    status = data.stat()
    data.write_bytes(b"b" * SIZE)
    os.utime(data, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace(data: Path) -> None:
    other = data.with_name("other")
    other.write_bytes(b"b" * SIZE)
    other.rename(data)


CHANGES: dict[str, Callable[[Path], object]] = {
    "content of the same size": lambda data: data.write_bytes(b"b" * SIZE),
    "content with the earlier time of modification": _keep_times,
    "another file under the name": _replace,
    "size": lambda data: data.write_bytes(b"a" * (SIZE + 1)),
}


@pytest.mark.usefixtures("settled")
def test_an_unchanged_file_is_read_once_also_by_another_process(
    data: Path, digests: FileDigests, read: list[Path]
) -> None:
    first = digest.of_path(data, known=digests)
    another = FileDigests(data.parent / "digests.db")
    try:
        assert digest.of_path(data, known=another) == first == digest.of_path(data, known=digests)
    finally:
        another.close()
    assert read == [data]
    assert first == digest.of_path(data)


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(data: Path, digests: FileDigests, change: str) -> None:
    before = digest.of_path(data, known=digests)
    CHANGES[change](data)
    assert digest.of_path(data, known=digests) == digest.of_path(data) != before


def test_a_file_that_has_just_changed_is_read_again(data: Path, digests: FileDigests, read: list[Path]) -> None:
    """Within the granularity of the file system's clock, another change would leave the times as they are."""
    digest.of_path(data, known=digests)
    digest.of_path(data, known=digests)
    assert read == [data, data]


@pytest.mark.usefixtures("settled")
def test_a_file_that_changes_while_it_is_read_is_read_again(data: Path, digests: FileDigests) -> None:
    class Change:
        def is_set(self) -> bool:
            with data.open("r+b") as file:
                file.seek(SIZE - 1)
                file.write(b"b")
            return False

    digest.of_path(data, Change(), digests)
    assert digest.of_path(data, known=digests) == digest.of_path(data)


@pytest.mark.usefixtures("settled")
def test_files_of_a_folder_are_told_apart(tmp_path: Path, digests: FileDigests, read: list[Path]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(5):
        (folder / str(number)).write_bytes(bytes([number]) * SIZE)
    (folder / "small").write_bytes(b"s" * SMALL)
    first = digest.of_path(folder, known=digests)
    assert len(read) == 6
    assert digest.of_path(folder, known=digests) == first
    assert [path.name for path in read[6:]] == ["small"], "a small file is read as fast as it is looked up"
    (folder / "0").rename(folder / "5")
    assert digest.of_path(folder, known=digests) == digest.of_path(folder) != first


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("damage", ["text", "folder", "closed"])
def test_without_the_cache_files_are_read(tmp_path: Path, data: Path, read: list[Path], damage: str) -> None:
    path = tmp_path / "damaged.db"
    path.mkdir() if damage == "folder" else path.write_text("no database" * 1000 if damage == "text" else "")
    digests = FileDigests(path)
    if damage == "closed":
        digests.close()
    assert digest.of_path(data, known=digests) == digest.of_path(data, known=digests) == digest.of_path(data)
    assert read == [data] * 3
    digests.close()


@pytest.mark.usefixtures("settled")
def test_a_run_that_reuses_a_step_reads_neither_its_inputs_nor_its_outputs(
    tmp_path: Path, data: Path, read: list[Path]
) -> None:
    ports = (Input("data", "uri_file", PathValue(str(data))),)
    copy = "cp ${{inputs.data}} ${{outputs.out}}/copy"
    plan = Plan("p", Graph((Step("s", copy, inputs=ports, outputs=(Output("out", "uri_folder", "rw_mount"),)),)))
    workspace, options = Workspace(tmp_path / "work"), Options(instances="loopback", track=False)
    assert run(plan, workspace, options).status is Status.COMPLETED
    assert [path.name for path in read] == ["data.bin", "copy"]
    again = run(plan, workspace, options)
    assert again.steps[0].reused_from is not None
    assert len(read) == 2

    (tmp_path / "work" / "digests.db").unlink()
    data.write_bytes(b"c" * SIZE)
    changed = run(plan, workspace, options)
    assert changed.steps[0].reused_from is None
    assert Path(changed.steps[0].outputs[0].path, "copy").read_bytes() == b"c" * SIZE
