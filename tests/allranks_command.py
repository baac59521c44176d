"""The command `allranks` as a user starts it, in a process of its own, and files for it to run."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from typer.core import TyperGroup

import bounded
from allranks.cli import main
from forked import Forked

PATIENCE = 60.0
"""Seconds after which what is waited for will not come any more."""

SCRIPT = Path(sys.executable).with_name("allranks")


def commands(group: Any) -> Iterator[Any]:
    """The commands of a group and of those in it."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield from commands(command) if isinstance(command, TyperGroup) else [command]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which has to be JSON and nothing else."""
        return json.loads(self.out)

    def step(self, name: str) -> Any:
        """The record of a step of the run that was printed, which has to have completed."""
        assert self.code == 0, f"{self.out[-2000:]}\n{self.err[-2000:]}"
        return next(step for step in self.json["steps"] if step["name"] == name)


def logs(step: Any) -> list[str]:
    """The logs of a step's ranks."""
    return [Path(rank["log"]).read_text().strip() for rank in step["ranks"]]


def allranks(*arguments: object, folder: Path, patience: float = 2 * PATIENCE, **variables: str) -> Ended:
    """Runs the command in the folder, to its end, which has to come within so many seconds."""
    done = subprocess.run(
        words(*arguments),
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=patience,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode())


def called(*arguments: object, folder: Path, **variables: str) -> Ended:
    """As `allranks`, in this process: for commands that read, whose process is not what is tested."""
    before = Path.cwd()
    argv = ["allranks", *map(str, arguments)]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="surrogateescape", newline="") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as err,
        mock.patch.dict(os.environ, environment(**variables), clear=True),
        mock.patch.multiple(sys, argv=argv, stdout=out, stderr=err),
    ):
        os.chdir(folder)
        try:
            main.main()
            code: object = 0
        except SystemExit as exit:
            code = exit.code or 0
        finally:
            os.chdir(before)
        texts = []
        for stream in (out, err):
            stream.flush()
            stream.buffer.seek(0)
            texts.append(stream.buffer.read().decode("utf-8", "surrogateescape"))
        return Ended(code if isinstance(code, int) else 1, *texts)


def forked(*arguments: object, folder: Path, patience: float = 2 * PATIENCE, **variables: str) -> Ended:
    """As `allranks`, in a process that was forked from one with the SDK: for what is not about how the command starts,
    since two of its three seconds are its imports."""
    script = SCRIPT if SCRIPT.exists() else Path(main.__file__)
    with tempfile.TemporaryDirectory() as outputs:
        output = Path(outputs) / "command"
        process = Forked(
            script, [str(argument) for argument in arguments], environment(**variables), folder, output, command=True
        )
        try:
            code = process.wait(patience)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        out, err = (output.with_suffix(suffix).read_bytes() for suffix in (".out", ".err"))
        return Ended(code, out.decode("utf-8", "surrogateescape"), err.decode())


@contextlib.contextmanager
def started(*arguments: object, folder: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Starts the command in a process group of its own, as a shell does; whatever happens, it is not left behind."""
    options.setdefault("stdout", subprocess.PIPE)
    with bounded.Popen(
        words(*arguments),
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def words(*arguments: object) -> list[str]:
    """The command line. Both ways to start the command are one: the script where it is installed, or the module."""
    command = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "allranks.cli.main"]
    return [*command, *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    """What a plain terminal of 80 columns gives the command, whatever the tests themselves are run in."""
    plain = {name: os.environ[name] for name in ("HOME", "PATH", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
    return plain | {"LANG": "C.UTF-8", "TERM": "xterm", "COLUMNS": "80", "OMP_NUM_THREADS": "1"} | variables


def write(folder: Path, name: str, text: str) -> Path:
    """Writes a file, with the text's common indentation taken away."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def write_job(folder: Path, command: str, name: str = "job.yml", **keys: object) -> Path:
    """Writes a command job YAML. JSON is YAML, and quotes whatever a shell command has in it."""
    job = {"command": command, "environment": "azureml:cpu:1", **keys}
    return write(folder, name, json.dumps(job))


class Fifo:
    """Tells a test what a rank does. Put it below the workspace: of /tmp an instance of the rack sees no more."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(path)
        self.path = path
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def __enter__(self) -> Fifo:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)

    def read(self) -> bytes:
        """Waits for what is written. Nothing: whoever had it open for writing is gone, and all that they started."""
        ready, _, _ = select.select([self._end], [], [], PATIENCE)
        assert ready, "nothing was written, and somebody still could"
        return os.read(self._end, 1 << 16)


def content(folder: Path) -> dict[str, bytes]:
    """Every file in a folder with what it holds, but for Python's own caches; empty where there is no folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
