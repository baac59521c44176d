"""Code as it was when the run started: one copy for each distinct content, named by its digest."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.plan.graph import Code, Plan, steps, with_steps

LEFT_OUT = frozenset({"__pycache__", ".git", ".allranks"})
"""Names that are never part of a snapshot."""

CHUNK = 1 << 20

_ANY = "*"
"""Stands for everything in a folder: a pattern that matches it leaves the whole folder out."""


@dataclass(frozen=True)
class Ignored:
    """What an ignore file leaves out.

    is_excluded: tells it of the absolute path of a file
    by_folder:   whether a folder of which everything is left out need not be looked into; a pattern that starts with
                 an exclamation mark takes single files in again
    """

    is_excluded: Callable[[Path], bool]
    by_folder: bool = True


NOTHING_IGNORED = Ignored(lambda path: False)  # noqa: ARG005
"""Takes every file."""


def keep(plan: Plan, snapshots: Path) -> Plan:
    """The plan with its code in that folder: what was read somewhere else for the time being is copied there."""
    codes = {step.code for _, step in steps(plan.graph) if step.code}
    kept = {code: take(Path(code.folder), snapshots, NOTHING_IGNORED, plan.name) for code in codes}
    moved = with_steps(plan.graph, lambda step: replace(step, code=kept[step.code]) if step.code else step)
    return replace(plan, graph=moved)


def take(code: Path, snapshots: Path, ignored: Ignored, where: str) -> Code:
    """Copies a folder, or a single file, to ``snapshots/DIGEST``, unless a copy of the same content is there.

    where: the place that messages name

    Links are followed, as they are on the way to Azure ML. Modes count only as far as a file may be executed.
    Raises InputError where a file cannot be read.
    """
    try:
        files = sorted(_files(code, snapshots, ignored))
        digest = _digest(files)
        if not (snapshots / digest).is_dir():
            digest = _copy(files, snapshots)
    except OSError as error:
        if error.filename is None or not _is_below(code, Path(os.fsdecode(error.filename))):
            raise
        found = f"{error.filename} cannot be read: {error.strerror}"
        raise InputError(
            Problem(where, found, "files that can be read", "remove it, or name it in .amlignore")
        ) from None
    return Code(str(snapshots / digest), digest)


def _files(code: Path, snapshots: Path, ignored: Ignored) -> Iterator[tuple[str, Path]]:
    """Each file with its name in the snapshot."""
    if not code.is_dir():
        yield code.name, code
        return
    own = {os.path.realpath(snapshots), os.path.realpath(snapshots.parent)}
    seen: set[str] = set()
    for parent, folders, names in os.walk(code, followlinks=True, onerror=_raise):
        real = os.path.realpath(parent)
        if real in seen:
            # A link that leads back up.
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [
            name
            for name in folders
            if name not in LEFT_OUT
            and os.path.realpath(os.path.join(parent, name)) not in own
            and not (ignored.by_folder and ignored.is_excluded(Path(parent, name, _ANY)))
        ]
        for name in names:
            path = Path(parent, name)
            if name not in LEFT_OUT and not ignored.is_excluded(path):
                yield path.relative_to(code).as_posix(), path


def _raise(error: OSError) -> None:
    raise error


def _digest(files: list[tuple[str, Path]]) -> str:
    whole = hashlib.sha256()
    for name, path in files:
        _add(whole, name, path, None)
    return whole.hexdigest()


def _copy(files: list[tuple[str, Path]], snapshots: Path) -> str:
    """Copies the files and returns the digest of what was copied, which counts where they change at this moment."""
    snapshots.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=snapshots, prefix=".new-"))
    try:
        whole = hashlib.sha256()
        for name, path in files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _add(whole, name, path, target)
        digest = whole.hexdigest()
        folder.chmod(0o755)
        try:
            folder.rename(snapshots / digest)
        except OSError:
            # Another process was faster.
            if not (snapshots / digest).is_dir():
                raise
        return digest
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _add(whole: hashlib._Hash, name: str, path: Path, target: Path | None) -> None:
    """Takes a file into the digest, and copies it where a target is given."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        # Opening a pipe would wait for its other end.
        raise OSError(0, "it is no regular file", str(path))
    content = hashlib.sha256()
    executable = bool(mode & stat.S_IXUSR)
    with open(path, "rb") as source, open(target or os.devnull, "wb") as copy:
        while chunk := source.read(CHUNK):
            content.update(chunk)
            copy.write(chunk)
    if target:
        target.chmod(0o755 if executable else 0o644)
    whole.update(f"{len(name)}:{name}:{executable:d}:{content.hexdigest()}\n".encode(errors="surrogateescape"))


def _is_below(folder: Path, path: Path) -> bool:
    return path == folder or folder in path.parents
