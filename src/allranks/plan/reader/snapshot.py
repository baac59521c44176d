"""Copy code for a run. Equal content is stored once, under its digest."""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.plan.graph import Code, Plan, Step
from allranks.plan.walk import steps, with_steps
from allranks.sdk.files import FileList

CHUNK = 1 << 20


def save(plan: Plan, snapshots: Path) -> Plan:
    """Return the plan with its code copied from temporary snapshots to the folder."""
    copies = {}
    for folder in {step.code.folder for _, step in steps(plan.graph) if step.code}:
        files = {path.relative_to(folder).as_posix(): path for path in Path(folder).rglob("*") if path.is_file()}
        copies[folder] = copy_files(files, snapshots, plan.name)

    def moved(step: Step, _path: str) -> Step:
        if step.code is None:
            return step
        copy = copies[step.code.folder]
        return replace(step, code=replace(step.code, folder=copy.folder, digest=copy.digest))

    return replace(plan, graph=with_steps(plan.graph, moved))


def copy_listed(listed: FileList, snapshots: Path, where: str, source: Path) -> Code:
    """Copy the files of a list, as `copy_files` does. source: the user's folder or file"""
    copied = copy_files(listed.files, snapshots, where)
    return replace(copied, left_out=listed.left_out_text(), source=os.path.abspath(source))


def copy_files(files: Mapping[str, Path], snapshots: Path, where: str) -> Code:
    """Copy files to ``snapshots/DIGEST``, unless a copy with the same content exists.

    files: by their names in the snapshot
    where: the place for messages

    Links are followed, as in an upload to Azure ML. Of the file modes, only the executable bit is kept. Raise
    InputError if a file cannot be read.
    """
    named = sorted(files.items())
    try:
        digest = _digest(named)
        try:
            os.utime(snapshots / digest)  # `allranks clean` keeps recently used snapshots
        except FileNotFoundError:
            digest = _copy(named, snapshots)
        except PermissionError:
            pass  # it belongs to another user, who cleans it
    except OSError as error:
        if error.filename is None or Path(os.fsdecode(error.filename)) not in files.values():
            raise
        found = f"{error.filename} cannot be read: {error.strerror}"
        fix = "remove it, or add it to .amlignore"
        raise InputError(Problem(where, found, "readable files", fix, code="unreadable-code")) from None
    return Code(str(snapshots / digest), digest)


def _copy(files: list[tuple[str, Path]], snapshots: Path) -> str:
    """Copy the files and return the digest of the copies, which is correct even if the files change meanwhile."""
    snapshots.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=snapshots, prefix=".new-"))
    try:
        digest = _digest(files, folder)
        folder.chmod(0o755)
        try:
            folder.rename(snapshots / digest)
        except OSError:
            # Another process created the same snapshot first.
            if not (snapshots / digest).is_dir():
                raise
        return digest
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _digest(files: list[tuple[str, Path]], folder: Path | None = None) -> str:
    """Return the digest of the files. Copy them to the folder, if there is one."""
    whole = hashlib.sha256()
    for name, path in files:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            # Opening a FIFO would block.
            raise OSError(0, "it is not a regular file", str(path))
        target = folder / name if folder else Path(os.devnull)
        if folder:
            target.parent.mkdir(parents=True, exist_ok=True)
        content = hashlib.sha256()
        with open(path, "rb") as source, open(target, "wb") as copy:
            while chunk := source.read(CHUNK):
                content.update(chunk)
                copy.write(chunk)
        executable = bool(mode & stat.S_IXUSR)
        if folder:
            target.chmod(0o755 if executable else 0o644)
        whole.update(f"{len(name)}:{name}:{executable:d}:{content.hexdigest()}\n".encode(errors="surrogateescape"))
    return whole.hexdigest()
