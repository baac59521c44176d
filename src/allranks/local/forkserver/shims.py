"""Write the programs that represent Python on an instance: see `shim.py`."""

import os
import shutil
import sys
from pathlib import Path

from allranks.local.forkserver import shim
from allranks.local.forkserver.request import LAUNCHERS, PYTHON

SHEBANG = 127
"""Maximum bytes of the path of an interpreter in a first line, with its option, in every kernel."""

_PROGRAM = """\
{first_line}
import sys
sys.path.append({source!r})
from shim import main
main({folder!r}, {program!r}, {name!r})
"""


def write(folder: Path, interpreter: Path) -> str:
    """Write the programs into the folder of an instance, and return their folder, which is to be the first on PATH.

    interpreter: the interpreter of the ranks
    """
    programs = folder / shim.PROGRAMS
    shutil.rmtree(folder, ignore_errors=True)  # of an engine that was killed
    programs.mkdir(parents=True)
    folder.chmod(0o700)  # a process that can connect to its socket can run programs as this user
    with os.scandir(interpreter.parent) as entries:
        names = [entry.name for entry in entries if PYTHON.fullmatch(entry.name) or entry.name in LAUNCHERS]
    for name in names:
        _write(programs / name, str(folder), str(interpreter.parent / name), name)
    _write(folder / shim.EXECUTABLE, str(folder), str(interpreter), str(interpreter))
    return str(programs)


def _write(file: Path, folder: str, program: str, name: str) -> None:
    source = os.path.dirname(shim.__file__)
    text = _PROGRAM.format(first_line=_first_line(), source=source, folder=folder, program=program, name=name)
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    file.chmod(0o700)


def _first_line() -> str:
    """Return the first lines of a script for this interpreter, isolated and without site-packages."""
    line = f"#!{sys.executable} -IS"
    if " " not in sys.executable and len(os.fsencode(line)) <= SHEBANG:
        return line
    quoted = sys.executable.replace("'", "'\\''")
    return f"#!/bin/sh\n'''exec' '{quoted}' -IS \"$0\" \"$@\"\n'''"
