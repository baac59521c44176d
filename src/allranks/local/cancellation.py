"""Cancel a run, or some of its nodes, in another process on this machine, by a signal to its engine."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.history import locks
from allranks.history.records import RunRecord
from allranks.history.store import Store
from allranks.workspace import Workspace

PATIENCE = 60.0
"""Seconds in which canceled processes must end. By default, ranks take up to 10 seconds, and MLflow a few more."""

LOOK = 0.05
"""Seconds between two polls of the engine."""


def cancel_run(workspace: Workspace, run: str, *, at_once: bool = False, patience: float = PATIENCE) -> bool:
    """Ask the engine of a run to end it, and wait. Return False if it did not end in time.

    run:     the id of the run
    at_once: whether to kill the ranks without a grace period

    Raise InputError if no process on this machine executes the run.
    """
    folder = workspace.run_folder(run)
    # Two different signals, because two pending signals of one kind are delivered as one.
    _signal(folder, signal.SIGTERM, *([signal.SIGINT] if at_once else []))
    return locks.wait(folder, patience)


def cancel_nodes(workspace: Workspace, run: RunRecord, paths: Sequence[str], *, at_once: bool = False) -> bool:
    """Ask the engine of a run to cancel nodes, and wait until it has read the request. Return False on a time-out.

    paths:   the paths of the nodes, as in their records. Everything inside a canceled node is canceled too.
    at_once: whether to kill the ranks without a grace period

    Raise InputError if no process on this machine executes the run.
    """
    folder = workspace.run_folder(run.id)
    with Store(workspace.database) as store:
        for _ in range(2 if at_once else 1):  # the second request kills the ranks
            for path in paths:
                store.add_cancellation(run.id, path)
            try:
                _signal(folder, signal.SIGUSR1)
            except InputError:
                store.cancellations(run.id)  # remove them, because no engine reads them
                raise
            if not wait_until(lambda: not store.has_cancellations(run.id) or locks.holder(folder) is None):
                return False
        store.cancellations(run.id)  # remove them if the run has just ended
    return True


def wait_until(condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Wait until a condition is true. Return False on a time-out."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(LOOK)
    return True


def _signal(folder: Path, *numbers: signal.Signals) -> None:
    """Send signals only to the engine that executes the run in a folder."""
    where = f"run {folder.name}"
    # A process that has just got the lock has not written its id yet.
    wait_until(lambda: (current := locks.holder(folder)) is None or current.pid != 0, 1.0)
    holder = locks.holder(folder)
    if holder is None:
        raise InputError(Problem(where, "no process executes it", "a run that is being executed"))
    try:
        process = os.pidfd_open(holder.pid)
    except OSError:
        process = None  # the process has ended, or the kernel has no pidfds
    try:
        # Process ids are reused. The engine is the process that has the lock file open while the lock is held.
        if not _has_open(holder.pid, folder / locks.NAME) or locks.holder(folder) != holder:
            found = f"process {holder.pid} executes it, which belongs to another user or another machine"
            raise InputError(Problem(where, found, "your engine on this machine", "end it where it was started"))
        for number in numbers:
            if process is None:
                os.kill(holder.pid, number)
            else:
                signal.pidfd_send_signal(process, number)
    except ProcessLookupError:
        pass  # it has just ended
    finally:
        if process is not None:
            os.close(process)


def _has_open(pid: int, path: Path) -> bool:
    try:
        target = path.stat()
        files = [file.stat() for file in Path(f"/proc/{pid}/fd").iterdir() if file.exists()]
    except OSError:
        return False
    return any(os.path.samestat(file, target) for file in files)
