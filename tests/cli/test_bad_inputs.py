"""Whatever is wrong with what a user gives: one message that leads to the fix, in bounded time and memory, and nothing is
touched."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from allranks.runs.workspace import FOLDER
from allranks_command import content, environment
from bad_inputs.commands import Commands
from bad_inputs.row import make_workspace, prepare
from bad_inputs.tables import ROWS

MEMORY = 500 << 20


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    with Commands() as started:
        yield started


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that other users can enter too."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="bad-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def workspace(place: Path) -> Path:
    """A workspace with two runs."""
    make_workspace(place / "workspace")
    return place / "workspace"


def test_there_are_many_rows() -> None:
    assert len(ROWS) >= 150


@pytest.mark.parametrize("name", ROWS)
def test_a_message_leads_to_the_fix(name: str, commands: Commands, place: Path, workspace: Path) -> None:
    row = ROWS[name]
    if row.other and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    folder = place / f"row{list(ROWS).index(name)}"
    prepare(row, folder, workspace)
    before = content(folder)
    ended = commands.run(
        row.arguments, folder, environment(TMPDIR="/tmp", **row.variables), row.closed, other=row.other
    )
    assert ended.code == row.code, ended.err
    assert "Traceback" not in ended.err
    message = words(ended.err)
    assert not [text for text in row.said if text not in message], ended.err
    if row.code == 2:
        assert ended.out == ""
        assert 2 in row.closed or "expected" in message or "fix" in message or "--help" in message, ended.err
        assert not re.search(r"found +found|expected +expected", message)
    assert users(content(folder)) == users(before)
    assert row.runs or row.code == 0 or not (folder / FOLDER).is_dir()
    assert ended.memory < MEMORY


def words(text: str) -> str:
    """The message on one line: a usage error stands in a box, whose lines break anywhere."""
    return " ".join(text.replace("│", " ").split())


def users(files: dict[str, bytes]) -> dict[str, bytes]:
    """The user's files, without the database, whose journals come and go."""
    return {name: text for name, text in files.items() if not name.startswith(f"{FOLDER}/")}
