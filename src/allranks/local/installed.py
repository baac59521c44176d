"""What an interpreter finds installed: by it a result is known to come from other packages."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from allranks.plan import digest

VENV = "pyvenv.cfg"
METADATA = (".dist-info", ".egg-info", ".pth")
"""Endings of the names, in a folder of packages, that tell a package and its version, or name an editable one."""


def of(interpreter: Path) -> str:
    """Return a digest of an interpreter and the names and versions of its packages.

    Of a package that is installed as editable the size and time of each source file count, and of one that was
    installed from a repository its commit.
    """
    parts = [*_identity(interpreter)]
    for folder in _folders(interpreter):
        for path in sorted(_entries(folder)):
            parts.append(path.name)
            if path.name.endswith(".dist-info"):
                parts.append(_text(path / "direct_url.json"))
            elif path.name.endswith(".pth"):
                parts += _editable(_text(path))
    return digest.of_text(*parts)


def _identity(interpreter: Path) -> tuple[str, ...]:
    real = interpreter.resolve()
    try:
        found = real.stat()
    except OSError:
        return (str(real),)
    return str(real), f"{found.st_size} {found.st_mtime_ns}", _text(interpreter.parent.parent / VENV)


def _folders(interpreter: Path) -> list[Path]:
    """Return the folders of packages that the interpreter looks into."""
    if interpreter == Path(sys.executable):
        return [Path(path) for path in dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))]
    prefix = interpreter.parent.parent
    folders = _below(prefix)
    settings = _text(prefix / VENV).replace(" ", "").lower()
    if "include-system-site-packages=true" in settings:
        base = interpreter.resolve().parent.parent
        folders += [*_below(base), *_below(base / "local")]
    return folders


def _below(prefix: Path) -> list[Path]:
    # lib64 is lib in most environments, and Debian's own packages are in lib/python3.
    found = [path for name in ("site-packages", "dist-packages") for path in prefix.glob(f"lib*/python3*/{name}")]
    return sorted({path.resolve() for path in found})


def _entries(folder: Path) -> Iterator[Path]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (folder / name for name in names if name.endswith(METADATA))


def _editable(lines: str) -> Iterator[str]:
    """Yield the source files in the folders that a .pth file names, with size and time."""
    for line in lines.splitlines():
        yield line
        if not os.path.isabs(line.strip()):
            continue  # a comment, an import, or a folder among the packages
        if os.path.isdir(os.path.join(line.strip(), "allranks", "runtime")):
            continue  # a component has its own copy of the runtime, and an edit of the engine changes no result
        for parent, folders, names in os.walk(line.strip()):
            folders[:] = sorted(
                name
                for name in folders
                if not name.startswith((".", "__pycache__")) and not os.path.exists(os.path.join(parent, name, VENV))
            )
            for name in sorted(names):
                if name.endswith((".py", ".so")):
                    yield _stamp(os.path.join(parent, name))


def _stamp(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return path
    return f"{path} {found.st_size} {found.st_mtime_ns}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
