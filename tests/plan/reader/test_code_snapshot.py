"""Code is kept as it was: once for each content, whole, and never half-written."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.plan.graph import Code
from allranks.plan.reader import snapshot
from allranks.sdk.files import list_path
from pipeline_files import write


@pytest.fixture
def code(tmp_path: Path) -> Path:
    write(tmp_path, "pyproject.toml", "")
    write(tmp_path, "code/main.py", "print(1)\n")
    write(tmp_path, "code/part/tool.py", "x = 1\n")
    return tmp_path / "code"


def take(code: Path, snapshots: Path, where: str) -> Code:
    """A snapshot of what is listed of a folder."""
    return snapshot.copy_listed(list_path(code, where, (snapshots, snapshots.parent)), snapshots, where, code)


def files(folder: str | Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_copy_by_content(code: Path, tmp_path: Path) -> None:
    taken = take(code, tmp_path / "kept", "here")
    assert taken.folder == str(tmp_path / "kept" / taken.digest)
    assert files(taken.folder) == files(code)
    assert os.listdir(tmp_path / "kept") == [taken.digest]


def _touch(code: Path) -> None:
    os.utime(code / "main.py", (1, 1))


def _change(code: Path) -> None:
    (code / "main.py").write_text("print(2)\n")


def _rename(code: Path) -> None:
    (code / "main.py").rename(code / "other.py")


def _allow(code: Path) -> None:
    (code / "main.py").chmod(0o755)


def _move(code: Path) -> None:
    (code / "part/tool.py").rename(code / "tool.py")


def _add_left_out(code: Path) -> None:
    for name in ("__pycache__/x.pyc", ".git/HEAD", ".allranks/allranks.db", "part/__pycache__/y.pyc"):
        write(code, name, "x")


def _link(code: Path) -> None:
    (code.parent / "main.py").write_text((code / "main.py").read_text())
    (code / "main.py").unlink()
    (code / "main.py").symlink_to("../main.py")


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (_touch, True),
        (_add_left_out, True),
        (_link, True),
        (_change, False),
        (_rename, False),
        (_allow, False),
        (_move, False),
    ],
)
def test_what_makes_it_another(code: Path, tmp_path: Path, change: Callable[[Path], None], same: bool) -> None:
    before = take(code, tmp_path / "kept", "here")
    content = files(before.folder)
    change(code)
    after = take(code, tmp_path / "kept", "here")
    assert (before == after) is same
    assert files(before.folder) == content


def test_a_file_may_be_executed_as_before(code: Path, tmp_path: Path) -> None:
    (code / "main.py").chmod(0o700)
    folder = Path(take(code, tmp_path / "kept", "here").folder)
    assert stat.S_IMODE((folder / "main.py").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "part/tool.py").stat().st_mode) == 0o644


def test_a_single_file(code: Path, tmp_path: Path) -> None:
    assert files(take(code / "main.py", tmp_path / "kept", "here").folder) == {"main.py": "print(1)\n"}


def test_the_snapshots_are_no_part_of_a_snapshot(code: Path) -> None:
    first = take(code, code / "work/kept", "here")
    write(code, "work/runs/log.txt", "x")
    assert take(code, code / "work/kept", "here") == first


def test_a_copy_that_fails_leaves_nothing(code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "rename", _full)
    with pytest.raises(OSError, match="No space left"):
        take(code, tmp_path / "kept", "here")
    assert os.listdir(tmp_path / "kept") == []


def _full(path: Path, target: Path) -> Path:
    raise OSError(28, "No space left on device", str(target))
