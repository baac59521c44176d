"""Whatever is wrong with what a user gives: one message that leads to the fix, and nothing is touched.

The tables are in `bad_inputs`. What a reader or a check refuses has a test of its own beside theirs.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import bounded
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import FOLDER, Workspace
from allranks_command import allranks, called, content, environment, write
from bad_inputs.commands import Commands
from bad_inputs.python_files import RIGHT
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


@pytest.mark.xdist_group("bad inputs")  # one process imports what they need, in 20 s
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
        assert ended.out == "" or row.prints
        leads = ("expected", "fix", "allranks why", " --help")
        assert 2 in row.closed or any(lead in message for lead in leads), ended.err
        assert not re.search(r"found +found|expected +expected", message)
    assert users(content(folder)) == users(before)
    assert row.runs or row.code == 0 or not (folder / FOLDER).is_dir()
    assert ended.memory < MEMORY


def test_a_process_of_its_own_says_the_same(tmp_path: Path) -> None:
    for name, text in RIGHT.items():
        write(tmp_path, name, text)
    done = allranks("run", "right.py", "--set", "data=data.csv", "--set", "lr=2", folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert [line.strip() for line in done.err.splitlines()] == [
        "✗ step step, key inputs.lr (right.py:16)",
        "found     input lr of the pipeline is 2.0",
        "expected  at most 1",
        "fix       --set lr=VALUE",
        "rule      value",
    ]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A run in the workspace of tmp_path that another process executes, and the id of that process."""
    record = run(Plan("p", Graph((Step("a", "false"),))), Workspace(tmp_path / ".allranks"), Options("loopback"))
    hold = (
        "import sys; from pathlib import Path; from allranks.history import locks\n"
        "with locks.hold(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    folder = Workspace(tmp_path / ".allranks").run_folder(record.id)
    with bounded.Popen(
        [sys.executable, "-c", hold, folder], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield record.id, process.pid
        process.kill()


def test_a_run_that_another_engine_executes(tmp_path: Path, holder: tuple[str, int]) -> None:
    identity, pid = holder
    before = content(tmp_path)
    done = called("resume", identity, folder=tmp_path)
    assert (done.code, done.out) == (2, "")
    for said in (f"run {identity}", f"process {pid} has been executing it since", f"allranks cancel {identity}"):
        assert said in done.err
    assert content(tmp_path) == before


def words(text: str) -> str:
    """The message on one line: a usage error stands in a box, whose lines break anywhere."""
    return " ".join(text.replace("│", " ").split())


def users(files: dict[str, bytes]) -> dict[str, bytes]:
    """The user's files, without the database, whose journals come and go."""
    return {name: text for name, text in files.items() if not name.startswith(f"{FOLDER}/")}
