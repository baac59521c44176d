"""One save: a thread of each rank writes its file, and rank 0's completes the checkpoint.

The thread spends its time in system calls and checksums, which do not hold Python's lock. The ranks communicate over a
process group for the saves alone: the others belong to the training.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from torch.distributed.checkpoint.api import CheckpointException

from allranks.errors import InputError, Problem
from allranks.runtime import lifecycle

WRITE_SECONDS = 1800.0
"""How long the ranks wait for the files of each other."""

ABANDON_SECONDS = 10.0
"""How long a failed rank waits for a save in progress, while the other ranks may be waiting for its end."""


def not_written(path: Path, reason: str) -> InputError:
    """Return the error of a checkpoint that could not be written."""
    expected = "a folder with enough space, which all instances share, and every rank can write to"
    fix = "free space there, keep fewer checkpoints, or use an output of the job"
    return InputError(Problem(f"checkpoint {path}", reason, expected, fix, code="checkpoints"))


class BackgroundSave:
    """A save in progress.

    path: folder of the checkpoint
    save: writes the checkpoint
    """

    def __init__(self, path: Path, save: Callable[[], object]) -> None:
        self._path, self._save = path, save
        self._process = os.getpid()
        self._error: str | None = None
        self._thread = threading.Thread(target=self._work, name="allranks-checkpoint", daemon=True)
        lifecycle.OPEN.add(self)
        self._thread.start()

    @property
    def has_failed(self) -> bool:
        """Whether the checkpoint could not be written. The other ranks may not know yet."""
        return self._error is not None

    def close(self) -> None:
        """Wait until the checkpoint is complete. Raise InputError if it could not be written."""
        if os.getpid() != self._process:  # a forked process, such as a DataLoader's worker, has no thread
            return
        self._thread.join()
        lifecycle.OPEN.discard(self)
        if self._error is not None:
            raise not_written(self._path, self._error)

    def abandon(self) -> None:
        """Wait a few seconds for the save. If it takes longer, the checkpoint remains incomplete."""
        if os.getpid() == self._process:
            self._thread.join(ABANDON_SECONDS)

    def _work(self) -> None:
        try:
            self._save()
        except CheckpointException as error:  # of one rank or several: torch tells all of them
            failures = sorted(error.failures.items())
            self._error = "; ".join(f"rank {rank}: {_first_line(reason)}" for rank, (reason, _) in failures)
        except Exception as error:  # a rank has ended, or the network failed
            self._error = f"the ranks lost their connection: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
