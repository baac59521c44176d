"""Copy a mounted input to a local disk, once per instance, for all its ranks."""

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from allranks.errors import InputError, Problem

COPY_THREADS = 16
"""Files that are copied in parallel. A mounted store has a high latency but serves many requests at once."""


def stage(source: str | Path, *, timeout_seconds: float = 3600.0) -> Path:
    """Copy a file or a folder to a local disk, and return the path of the copy, which has the source's name.

    One rank of the instance copies while the others wait. If it is killed, another one copies. The copy is in the
    instance's temporary folder, under the job's name. The source is copied again if names, sizes or
    modification times in it have changed. No process group is needed.

    timeout_seconds: time limit for the rank that copies

    Raise InputError if the source does not exist, or the disk is full. Raise TimeoutError after timeout_seconds.
    """
    source = Path(source)
    if not source.exists():
        raise InputError(Problem("input", f"nothing at {source}", "a file or a folder", "correct the path"))
    source = source.resolve()
    files = sorted(_files(source))
    base = _job_folder()
    target = base / _stamp(source, files)
    with _lock(target.with_suffix(".lock"), timeout_seconds):
        if not target.exists():
            _copy(source, files, target)
    return target / source.name


def _job_folder() -> Path:
    names = ["allranks", str(os.getuid()), os.environ.get("AZUREML_RUN_ID", "")]
    folder = Path(tempfile.gettempdir(), "-".join(filter(None, names)))
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise InputError(Problem("temporary folder", f"{folder} is another user's", fix="set TMPDIR to your own"))
    return folder


def _files(source: Path) -> Iterator[Path]:
    """Yield every file of the source, relative to the source's parent folder. Follow links."""
    if source.is_file():
        yield Path(source.name)
    for folder, _, names in os.walk(source, followlinks=True):
        yield from (Path(folder, name).relative_to(source.parent) for name in names)


def _stamp(source: Path, files: list[Path]) -> str:
    stamp = hashlib.sha256(os.fsencode(source))
    for file in files:
        try:
            status = (source.parent / file).stat()
        except FileNotFoundError:
            problem = Problem(
                f"input {source}", f"{file} is a broken link", "a file", "remove the link, or restore its target"
            )
            raise InputError(problem) from None
        stamp.update(b"%s\0%d\0%d\0" % (os.fsencode(file), status.st_size, status.st_mtime_ns))
    return stamp.hexdigest()[:16]


@contextmanager
def _lock(path: Path, timeout_seconds: float) -> Generator[None]:
    # The kernel releases the lock of a killed process. A marker file would remain.
    deadline = time.monotonic() + timeout_seconds
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TimeoutError(f"another rank has been copying for {timeout_seconds:g} s ({path})") from None
                time.sleep(0.05)
        yield


def _copy(source: Path, files: list[Path], target: Path) -> None:
    """Copy to a folder beside the target, and rename it, so that an existing target is always complete."""
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / source.name if source.is_dir() else partial).mkdir(parents=True)
    try:
        for folder in {file.parent for file in files}:
            (partial / folder).mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(COPY_THREADS) as pool:
            for _ in pool.map(lambda file: shutil.copy2(source.parent / file, partial / file), files):
                pass
        partial.replace(target)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        needed = sum((source.parent / file).stat().st_size for file in files)
        found = f"no room for a copy of {needed:,} bytes below {target.parent}"
        fix = "set TMPDIR to a larger disk, or choose a size with one"
        raise InputError(Problem(f"input {source}", found, fix=fix)) from error
