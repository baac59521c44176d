"""Digest an interpreter's installed packages, so that results are reused only with the same packages."""

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from allranks.images import rootfs
from allranks.plan import digest

VENV = "pyvenv.cfg"
METADATA = (".dist-info", ".egg-info", ".pth")
"""Suffixes of entries in a package folder that name a package and its version, or an editable package."""


def fingerprint(interpreter: Path) -> str:
    """Return a digest of an interpreter and of the names and versions of its packages."""
    return digest.of_text(*_identity(interpreter), *(f"{name} {text}" for name, text in versions(interpreter).items()))


def versions(interpreter: Path) -> dict[str, str]:
    """Return the versions of an interpreter's packages by name.

    The version of an editable package includes a digest of the size and time of each source file. The version of a
    package from a repository includes a digest of the commit.
    """
    found: dict[str, str] = {}
    editable: dict[str, str] = {}
    for folder in folders(interpreter):
        for path in sorted(_entries(folder)):
            name, _, version = path.stem.partition("-")
            if path.suffix == ".pth":
                editable[name] = digest.of_text(*_editable(_text(path)))[:8]
            elif name not in found:  # the first folder hides the others
                source = _text(path / "direct_url.json")
                found[name] = f"{version} ({digest.of_text(source)[:8]})" if "vcs_info" in source else version
    for pth, stamp in editable.items():
        name = next((name for name in found if name.lower() in pth.lower()), pth)
        found[name] = f"{found.get(name, '')} ({stamp})".strip()
    return found


def _identity(interpreter: Path) -> tuple[str, ...]:
    real = interpreter.resolve()
    try:
        status = real.stat()
    except OSError:
        return (str(real),)
    return str(real), f"{status.st_size} {status.st_mtime_ns}", _text(interpreter.parent.parent / VENV)


def folders(interpreter: Path) -> list[Path]:
    if interpreter == Path(sys.executable):
        return [Path(path) for path in dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))]
    prefix = interpreter.parent.parent
    found = _below(prefix)
    if rootfs.of(interpreter):  # a Debian's pip installs there
        found += _below(prefix / "local")
    settings = _text(prefix / VENV).replace(" ", "").lower()
    if "include-system-site-packages=true" in settings:
        base = interpreter.resolve().parent.parent
        found += [*_below(base), *_below(base / "local")]
    return found


def _below(prefix: Path) -> list[Path]:
    # lib64 usually links to lib, and Debian's own packages are in lib/python3.
    folders = [path for name in ("site-packages", "dist-packages") for path in prefix.glob(f"lib*/python3*/{name}")]
    return sorted({path.resolve() for path in folders})


def _entries(folder: Path) -> Iterator[Path]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (folder / name for name in names if name.endswith(METADATA))


def _editable(lines: str) -> Iterator[str]:
    """Yield the lines of a .pth file, and the source files in the folders that it names, with size and time."""
    for line in lines.splitlines():
        yield line
        if not os.path.isabs(line.strip()):
            continue  # a comment, an import, or a relative folder
        if any(os.path.isdir(os.path.join(line.strip(), name)) for name in ("allranks/runtime", "allranks_steps")):
            continue  # a component has its own copy of these packages, and changes to the engine do not affect results
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
        status = os.stat(path)
    except OSError:
        return path
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
