"""End a run that another process executes on this machine, or nodes of it: the engine gets a signal."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.runs import locks
from allranks.runs.records import RunRecord
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

PATIENCE = 60.0
"""Seconds that what was canceled may take to end. Ranks have 10 of them by default, and MLflow some more."""

LOOK = 0.05
"""Seconds between two looks at what the engine did."""


def cancel_run(workspace: Workspace, run: str, *, at_once: bool = False, patience: float = PATIENCE) -> bool:
    """Ask the engine of a run to end it, and wait. Return whether it ended in that time.

    run:     its id
    at_once: whether ranks are killed without time to end by themselves

    Raise InputError where no process on this machine executes the run.
    """
    folder = workspace.run_folder(run)
    # Two different signals: two of one kind may arrive as one.
    _signal(folder, signal.SIGTERM, *([signal.SIGINT] if at_once else []))
    return locks.wait(folder, patience)


def cancel_nodes(
    workspace: Workspace, run: RunRecord, paths: Sequence[str], *, at_once: bool = False, patience: float = PATIENCE
) -> bool:
    """Ask the engine of a run to end nodes, and wait until it has read that. Return whether that came in time.

    paths:   of the nodes, as their records have them. What a node holds ends with it
    at_once: whether ranks are killed without time to end by themselves

    Raise InputError where no process on this machine executes the run.
    """
    folder = workspace.run_folder(run.id)
    with Store(workspace.database) as store:
        for _ in range(2 if at_once else 1):  # who asks twice has waited long enough
            for path in paths:
                store.add_cancellation(run.id, path)
            try:
                _signal(folder, signal.SIGUSR1)
            except InputError:
                store.cancellations(run.id)  # nobody reads them
                raise
            if not wait_until(lambda: not store.has_cancellations(run.id) or locks.holder(folder) is None, patience):
                return False
        store.cancellations(run.id)  # of a run that ended meanwhile
    return True


def wait_until(condition: Callable[[], bool], patience: float = PATIENCE) -> bool:
    """Wait for what another process does. Return whether that came in time."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(LOOK)
    return True


def _signal(folder: Path, *numbers: signal.Signals) -> None:
    """Send signals to the engine that executes the run of a folder, and to no other process."""
    where = f"run {folder.name}"
    # A process that has just got the lock has not written its id yet.
    wait_until(lambda: (found := locks.holder(folder)) is None or found.pid != 0, 1.0)
    holder = locks.holder(folder)
    if holder is None:
        raise InputError(Problem(where, "no process executes it", "a run that is being executed"))
    found = f"process {holder.pid} executes it"
    try:
        process = os.pidfd_open(holder.pid)
    except OSError:
        process = None  # the process has ended, or the kernel has no such descriptors
    try:
        # Ids of processes are used again. The one that has the lock file open, while the lock is held, is the engine.
        if not _has_open(holder.pid, folder / locks.NAME) or locks.holder(folder) != holder:
            found += ", and is another user's or on another machine"
            raise InputError(Problem(where, found, "an engine of yours on this machine", "end it where it was started"))
        if not _catches(holder.pid, signal.SIGUSR1):
            found += " on a thread that gets no signals"
            raise InputError(Problem(where, found, "", f"end the process: kill {holder.pid}"))
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
        wanted = path.stat()
        files = [file.stat() for file in Path(f"/proc/{pid}/fd").iterdir() if file.exists()]
    except OSError:
        return False
    return any(os.path.samestat(file, wanted) for file in files)


def _catches(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal (proc_pid_status(5), SigCgt). An engine on a main thread has
    one for SIGUSR1."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)
