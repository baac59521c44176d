"""Work with the files of a step: in a thread where it may take long, and with errors that fail the step alone."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable, Iterator
from typing import TypeVar

from allranks.plan.file_tree import StoppedError
from allranks.runs.records import Status, StepRecord, Verdict

Result = TypeVar("Result")


async def run_io(work: Callable[[], Result], *, in_thread: bool) -> Result:
    """Run file operations, in a thread if they may copy or digest many files. For a small step, waking a thread takes
    longer than the file operations."""
    return await asyncio.to_thread(work) if in_thread else work()


@contextlib.contextmanager
def judged(record: StepRecord) -> Iterator[None]:
    """Turn an error with the step's files, such as an unreadable input, into a failure of the step instead of the run.

    Raise OSError if this machine's disk is full.
    """
    try:
        yield
    except StoppedError:
        record.status = Status.CANCELED
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        problem = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        record.status = Status.FAILED
        record.verdict = Verdict(record.name, f"its files cannot be read or written: {problem}")
