"""Which modules an interpreter has. Nothing is imported."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from allranks.local import machine_variables

START_SECONDS = 30
"""Time limit for an interpreter to answer. One that does not is taken to have every module."""

_INSTALLED = ("site-packages", "dist-packages")
"""Names of folders with installed packages."""

_QUESTION = """
import importlib.util, json, sys
sys.path = [entry for entry in sys.path if entry]
def has(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:
        return True
print(json.dumps([name for name in json.load(sys.stdin) if has(name)]))
"""

_found: dict[Path, set[str]] = {}
"""The modules that interpreters have. What one lacks may be installed at any time."""


def missing(interpreter: Path, names: Iterable[str]) -> set[str]:
    """Return the top-level modules that an interpreter does not have.

    Another interpreter than this one is started once for all names that have not been found before.
    """
    found = _found.setdefault(interpreter, set())
    unknown = set(names) - found
    if unknown:
        found |= _found_here(unknown) if interpreter == Path(sys.executable) else _found_by(interpreter, unknown)
    return unknown - found


def _found_here(names: set[str]) -> set[str]:
    importlib.invalidate_caches()
    path = _own_path()
    return {name for name in names if name in sys.stdlib_module_names or _has(name, path)}


def _has(name: str, path: list[str]) -> bool:
    try:
        if PathFinder.find_spec(name, path) is not None:
            return True
        finders = [finder for finder in sys.meta_path if finder is not PathFinder]
        return any(finder.find_spec(name, None) is not None for finder in finders)
    except Exception:  # a finder is code of an installed package
        return True


def _own_path() -> list[str]:
    """Return this interpreter's path without what only this process has: its script's folder and PYTHONPATH."""
    script = os.path.dirname(os.path.abspath(sys.argv[0])) if sys.argv else ""
    own = {"", os.getcwd(), script, *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    # The script of a notebook's kernel is an installed module, and PYTHONPATH may name installed packages too.
    return [entry for entry in sys.path if entry not in own or os.path.basename(entry) in _INSTALLED]


def _found_by(interpreter: Path, names: set[str]) -> set[str]:
    try:
        answer = subprocess.run(
            [str(interpreter), "-c", _QUESTION],
            input=json.dumps(sorted(names)),
            env=machine_variables.of(os.environ, interpreter, 1),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=True,
        )
        return set(json.loads(answer.stdout.splitlines()[-1]))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return names
