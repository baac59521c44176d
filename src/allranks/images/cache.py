"""Environments that were made on this machine. Each is made once and shared by all runs with the same definition."""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.images.packages import Packages, place_of
from allranks.sdk.paths import cache_folder
from allranks.secrets import redact

Report = Callable[[str], None]
"""Is called with the progress of an installer."""

COMPLETE = ".complete"
"""The file that marks a folder whose packages are all installed."""

SHOWN_LINES = 8


def root() -> Path:
    """Return the folder of this user's environments."""
    return cache_folder("environments")


def exists(folder: Path) -> bool:
    """Return whether an environment is complete."""
    return (folder / COMPLETE).exists()


def make(folder: Path, create: Callable[[], None], report: Report) -> None:
    """Make an environment if it does not exist. Wait for another process that makes the same one.

    create: makes the folder and installs the packages. If it raises an error, the folder is removed

    Raise InputError if the disk cannot be written.
    """
    try:
        with _locked(folder, lambda: report("another process makes it")):
            if exists(folder):
                return
            shutil.rmtree(folder, ignore_errors=True)  # what a killed process has left
            try:
                create()
                (folder / COMPLETE).touch()
                report("ready")
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
    except OSError as error:
        place = str(error.filename or root())
        fix = "free some space, or set XDG_CACHE_HOME to another disk"
        raise InputError(Problem(place, error.strerror or str(error), "a folder that can be written", fix)) from None


@contextlib.contextmanager
def _locked(folder: Path, waits: Callable[[], None]) -> Iterator[None]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run(command: Sequence[str], report: Report, variables: Mapping[str, str] | None = None) -> tuple[int, list[str]]:
    """Run an installer. Return its exit code and the last lines that it printed."""
    environment = {**(variables or {}), **os.environ, "NO_COLOR": "1"}
    for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"):
        environment.pop(name, None)
    lines: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
        encoding="utf-8", errors="replace",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                lines = [*lines[-200:], redact(line.rstrip())]
                report(lines[-1].strip())
        except BaseException:
            process.kill()
            raise
    return process.returncode, [line for line in lines if line.strip()]


def failed(where: str, file: Path, packages: Packages, lines: Sequence[str]) -> InputError:
    """Return the error of a failed installation, with its last lines, and the line of the file with the package that
    they name.

    where: the environment, for the message
    """
    text = "\n".join(lines[-SHOWN_LINES:])
    named = (match[0] for line in packages.requirements if (match := re.match(r"[A-Za-z][\w.-]*", line)))
    # Installers print names as PyPI normalises them.
    blamed = next((name for name in named if re.search(rf"\b{re.sub('[-_.]+', '[-_.]+', name)}\b", text, re.I)), "")
    found = "its packages cannot be installed:\n    " + text.replace("\n", "\n    ")
    fix = "correct the file, or use the packages of this Python: --environment host"
    return InputError(Problem(f"{where} ({place_of(file, blamed)})", found, "", fix))
