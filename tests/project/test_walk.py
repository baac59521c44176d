"""The first hour of an ordinary user who has the wheel and an empty folder. Other tests run the commands as
the user who runs the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from allranks_command import Ended

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ORDINARY = 54321
"""A user that no machine has."""

PATIENCE = 180.0
NOTEBOOK = """
import json, nbclient, nbformat
notebook = nbformat.read({name!r}, as_version=4)
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(json.dumps([cell.get("outputs") for cell in notebook.cells]))
"""


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(dir=os.environ["PYTEST_DEBUG_TEMPROOT"], prefix="allranks-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def environment(root: Path) -> Path:
    """A virtual environment with the wheel. All other packages are those of the tests: torch is not installed again."""
    wheels, venv = root / "wheels", root / "venv"
    build = ["hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    subprocess.run([sys.executable, "-m", *build], cwd=ROOT, check=True, timeout=PATIENCE)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True, timeout=PATIENCE)
    (wheel,) = wheels.iterdir()
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(venv / "bin/python")]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, timeout=PATIENCE)
    # Python does not process the .pth files of a folder that a .pth file adds: the checkout stays out of sight.
    (packages,) = venv.glob("lib/python3*/site-packages")
    (packages / "others.pth").write_text("\n".join({sysconfig.get_path(kind) for kind in ("purelib", "platlib")}))
    return venv


@dataclass(frozen=True)
class User:
    """A user in a new folder. uid: None: the one that runs the tests, who is not root"""

    uid: int | None
    venv: Path
    folder: Path

    def allranks(self, *arguments: str) -> Ended:
        return self.run(str(self.venv / "bin/allranks"), *arguments)

    def python(self, program: str) -> Ended:
        return self.run(str(self.venv / "bin/python"), "-c", program)

    def notebook(self, name: str) -> str:
        """Run a notebook, and return what its cells have shown."""
        done = self.python(NOTEBOOK.format(name=name))
        assert done.code == 0, done.err
        return done.out

    def run(self, *command: str) -> Ended:
        home = self.folder.parent
        variables = {"HOME": home, "TMPDIR": home / "tmp", "PATH": f"{self.venv / 'bin'}:/usr/bin:/bin"}
        variables |= {"LANG": "C.UTF-8", "COLUMNS": "120", "OMP_NUM_THREADS": "1"}
        identity = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={name: str(value) for name, value in variables.items()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            **identity,  # type: ignore[arg-type]
        )
        assert "Traceback (most recent call last)" not in done.stderr, done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def user(root: Path, environment: Path) -> Iterator[User]:
    uid = ORDINARY if os.getuid() == 0 else None  # only root can be another user
    home = root / "home"
    folder = home / "Erste Stunde für Jürgen"
    for path in (home, home / "tmp", folder):
        path.mkdir()
        if uid is not None:
            os.chown(path, uid, uid)
    yield User(uid, environment, folder)
    if uid is not None:
        assert processes_of(uid) == []
    shutil.rmtree(home)


def processes_of(uid: int) -> list[str]:
    """Return the commands of all processes of a user."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == uid:
                found.append((process / "cmdline").read_text())
        except FileNotFoundError:
            continue
    return found


def test_the_first_hour(user: User) -> None:
    assert user.python("import allranks; print(allranks.__file__)").out.startswith(str(user.venv))
    done = user.allranks("init")
    assert done.code == 0, done.err + done.out
    assert "accuracy" in user.notebook("two_spirals.ipynb")
