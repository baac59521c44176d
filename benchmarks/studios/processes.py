"""All processes below one, to stop and continue them."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def descendants(process: int) -> Iterator[int]:
    """Yield the ids of the processes that a process has started, and of those that they have started."""
    for child in map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()):
        yield child
        yield from descendants(child)


def send(processes: Iterable[int], signal: int) -> None:
    """Send a signal to each process that is still there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal)
