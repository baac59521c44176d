"""What faults do to the processes of ranks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from allranks.contract import fault_points
from allranks.history.records import RankRecord
from allranks.local import stack_dumps

PERIOD = 0.1
"""Seconds from one stop of a slow rank to the next."""


def processes_of(ranks: Sequence[RankRecord]) -> list[int]:
    return [pid for pid, _ in stack_dumps.processes_of(ranks)]


def send(pids: Sequence[int], number: int) -> None:
    """Send a signal to processes, of which some may have ended."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


async def slow_down(ranks: Sequence[RankRecord], factor: float, seconds: float) -> None:
    """Stop the ranks for a part of each period, until the time is over or they have ended."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and not all(rank.status.ended for rank in ranks):
            pids = processes_of(ranks)
            send(pids, signal.SIGSTOP)
            await asyncio.sleep(PERIOD * (1 - 1 / factor))
            send(pids, signal.SIGCONT)
            await asyncio.sleep(PERIOD / factor)
    finally:
        send(processes_of(ranks), signal.SIGCONT)


def hang(ranks: Sequence[RankRecord]) -> str:
    """Make the main thread of the ranks wait for ever. Return the effect.

    Only a Python process that was forked from a fork server can do that. Others are stopped as a whole.
    """
    pids = processes_of(ranks)
    able = [pid for pid in pids if _catches(pid, fault_points.HANG_SIGNAL)]
    send(able or pids, fault_points.HANG_SIGNAL if able else signal.SIGSTOP)
    return "the main thread was halted in" if able else "SIGSTOP, as it is not a forked Python process, sent to"


def _catches(pid: int, number: int) -> bool:
    with contextlib.suppress(OSError, ValueError):
        _, _, caught = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").partition("SigCgt:")
        return bool(int(caught.split()[0], 16) >> (number - 1) & 1)
    return False


def limit_memory(ranks: Sequence[RankRecord]) -> None:
    """Let every further allocation of address space fail in the ranks. The kernel's own killing of a process for lack
    of memory would need a control group, which an ordinary user cannot make."""
    for pid in processes_of(ranks):
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_AS, (0, 0))
