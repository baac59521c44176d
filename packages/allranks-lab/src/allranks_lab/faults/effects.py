"""The effects of faults on the processes of ranks."""

import asyncio
import contextlib
import json
import resource
import signal
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from allranks.history.records import RankRecord
from allranks.local.stack_dumps import pids_of, signal_all
from allranks_lab.faults.in_rank import HANG_SIGNAL

PERIOD = 0.1
"""Seconds from one stop of a slow rank to the next."""


def hold(reports: Iterable[Path], steps: Iterable[int]) -> None:
    """Make the ranks with these report files wait at these training steps."""
    text = json.dumps(sorted(set(steps)))
    for path in reports:
        path.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{path}.steps").write_text(text, encoding="utf-8")


def release(path: Path, step: int, how: str = "") -> None:
    """Let the rank with this report file continue after a training step. how: "", or HANG"""
    new = Path(f"{path}.{step}.new")
    new.write_text(how, encoding="utf-8")
    new.rename(f"{path}.{step}")


async def slow_down(ranks: Sequence[RankRecord], factor: float, seconds: float) -> None:
    """Stop the ranks for a part of each period, until the time is over or they have ended."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and not all(rank.status.ended for rank in ranks):
            pids = pids_of(ranks)
            signal_all(pids, signal.SIGSTOP)
            await asyncio.sleep(PERIOD * (1 - 1 / factor))
            signal_all(pids, signal.SIGCONT)
            await asyncio.sleep(PERIOD / factor)
    finally:
        signal_all(pids_of(ranks), signal.SIGCONT)


def hang(ranks: Sequence[RankRecord]) -> str:
    """Make the main thread of the ranks wait indefinitely. Return the effect.

    Only a Python process that was forked from a fork server supports that. Others are stopped as a whole.
    """
    pids = pids_of(ranks)
    able = [pid for pid in pids if _catches(pid, HANG_SIGNAL)]
    signal_all(able or pids, HANG_SIGNAL if able else signal.SIGSTOP)
    return "the main thread was halted in" if able else "SIGSTOP, as it is not a forked Python process, sent to"


def _catches(pid: int, number: int) -> bool:
    with contextlib.suppress(OSError, ValueError):
        _, _, caught = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").partition("SigCgt:")
        return bool(int(caught.split()[0], 16) >> (number - 1) & 1)
    return False


def limit_memory(ranks: Sequence[RankRecord]) -> None:
    """Let every further allocation of address space fail in the ranks. To make the kernel kill a process for lack of
    memory, a control group would be needed, which an ordinary user cannot make."""
    for pid in pids_of(ranks):
        with contextlib.suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_AS, (0, 0))
