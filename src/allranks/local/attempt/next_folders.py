"""The folders and the log of the next step, made while the ranks of other steps run, and moved to their place when it
starts.

A file system such as ext4 creates a folder or a file more slowly than it moves one, and more slowly still for some
seconds after others were removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from allranks.contract import logs

FOLDERS = ("reports", logs.FOLDER, "outputs", "instances")
"""Of every step."""

INSTANCE, CODE, OUTPUTS = "0", "code", "outputs"
LINK = "../../../outputs"
"""From the working directory of an instance to the step's artifacts."""


class NextFolders:
    """Folders of steps of one run that do not contain anything yet. Threads may call `place`; use all else on the
    thread of the event loop.

    parent: returns the folder for them, on the disk of the steps' folders
    """

    def __init__(self, parent: Callable[[], Path]) -> None:
        self._parent = parent
        self._ready: list[str] = []
        self._returned: list[str] = []
        self._files: list[str] = []
        self._count = 0

    def place(self, folder: Path) -> bool:
        """Make a step's folders at a path, with those of its first instance. Return False if there is something at the
        path, or none is ready."""
        try:
            ready = self._ready.pop()  # first, because another thread may be placing one too
        except IndexError:
            return False
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            os.rename(ready, folder)
        except OSError:
            self._ready.append(ready)
            return False
        return True

    def make_file(self, path: Path) -> None:
        """Make an empty file, unless there is one. Raise OSError if that fails."""
        if self._files and not os.path.lexists(path):
            file = self._files.pop()
            try:
                os.rename(file, path)
            except OSError:
                self._files.append(file)
            else:
                return
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))

    def take_back(self, folder: Path) -> bool:
        """Take the instances of a step that has completed for another step. Return False if the step has left anything
        in them, or changed them."""
        if len(self._returned) > 1 or not _is_unused(folder / "instances"):
            return False
        self._returned.append(str(folder / "instances"))
        return True

    def make_next(self) -> None:
        """Make the folders of a step and a file, unless they are ready. Call it when there is nothing else to do."""
        with contextlib.suppress(OSError):
            if not self._files:
                file = os.path.join(self._parent(), f"file-{self._count}")
                self._count += 1
                os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
                self._files.append(file)
            if self._ready:
                return
            folder = os.path.join(self._parent(), f"step-{self._count}")
            self._count += 1
            os.mkdir(folder)
            for name in FOLDERS[:-1]:
                os.mkdir(f"{folder}/{name}")
            if self._returned:
                os.rename(self._returned.pop(), f"{folder}/instances")
            else:
                code = f"{folder}/instances/{INSTANCE}/{CODE}"
                os.makedirs(code)
                os.symlink(LINK, f"{code}/{OUTPUTS}")
            self._ready.append(folder)

    def returned(self) -> list[str]:
        """Return the folders that were taken back and that no step needs any more."""
        returned, self._returned = self._returned, []
        return returned


def _is_unused(instances: Path) -> bool:
    """Return whether the folder of a step's instances is as it was made."""
    code = f"{instances}/{INSTANCE}/{CODE}"
    try:
        return (
            os.listdir(instances) == [INSTANCE]
            and os.listdir(f"{instances}/{INSTANCE}") == [CODE]
            and os.listdir(code) == [OUTPUTS]
            and os.readlink(f"{code}/{OUTPUTS}") == LINK
            and os.stat(code).st_mode == os.stat(instances).st_mode
            and os.stat(code).st_uid == os.geteuid()
        )
    except OSError:
        return False
