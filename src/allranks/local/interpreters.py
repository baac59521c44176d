"""The Python interpreter of a step's processes: that of the step's environment, or else the engine's own.

On Azure ML, frameworks with incompatible packages have separate environments. Here, such an environment is a virtual
environment with the same name, `.venvs/NAME`, in the pipeline's folder or a folder above.
"""

import platform
import re
import sys
from pathlib import Path

from allranks.images import rootfs
from allranks.plan.environment import Environment
from allranks.sdk.paths import shown

FOLDER = ".venvs"
OLDEST, OLDEST_OF_WORKERS = 10, 7
"""The oldest minor versions of Python that allranks, and the workers of parallel steps, support."""


def find(environment: Environment, source: str) -> Path:
    """Return the absolute path of the interpreter of a step's processes.

    source: the pipeline's file; "" for the current folder
    """
    if environment.interpreter:
        return Path(environment.interpreter)
    default = Path(sys.executable)
    if not environment.name:
        return default
    venv = find_venv(environment.name, Path(source).absolute().parent if source else Path.cwd())
    return venv / "bin" / "python" if venv else default


def find_venv(name: str, start: Path) -> Path | None:
    """Return the virtual environment of that name in `start` or a folder above; None if there is none."""
    candidates = (folder / FOLDER / name for folder in (start, *start.parents))
    return next((folder for folder in candidates if (folder / "bin" / "python").exists()), None)


def describe(path: Path) -> str:
    """Return an interpreter's version, if it is known, and path, without starting it."""
    python = f"Python {version_of(path)}".rstrip()
    if path == Path(sys.executable):
        return f"{python} of allranks, {path}"
    return f"{python}, {shown(path)}"


def version_of(path: Path) -> str:
    """Return the version of an interpreter without starting it; "" if it is unknown."""
    if path == Path(sys.executable):
        return platform.python_version()
    named = re.fullmatch(r"python(3\.\d+)", path.resolve().name)
    return _version_of_venv(path.parent.parent) or (named[1] if named else "")


def is_older(path: Path, minor: int) -> bool:
    """Return whether an interpreter is known to be older than Python 3.MINOR."""
    version = version_of(path)
    return bool(version) and tuple(map(int, version.split(".")[:2])) < (3, minor)


def runs_fork_server(path: Path) -> bool:
    """Return whether an interpreter is of this machine, and of a version that fork servers are written for."""
    return not rootfs.of(path) and not is_older(path, OLDEST)


def _version_of_venv(folder: Path) -> str:
    """Return the version in a virtual environment's configuration, whichever tool has created it."""
    try:
        text = (folder / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    match = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", text, re.MULTILINE)
    return match[1] if match else ""


def prefixes(interpreter: Path) -> tuple[str, ...]:
    """Return the folders that an interpreter needs: its own, that of a virtual environment's base Python, and the
    engine's."""
    folders = [str(interpreter.parent.parent), str(interpreter.resolve().parent.parent)]
    return (*folders, sys.prefix, sys.base_prefix)
