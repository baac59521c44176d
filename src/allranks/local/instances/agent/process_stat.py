"""Read CPU time and memory of a process from /proc."""

from __future__ import annotations

import os
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """What /proc/PID/stat says of a process.

    ticks: CPU time in clock ticks, of the process and of the ended children that it has waited for
    image: two addresses that a forked process shares with its parent until it executes another program. With random
           addresses, no other process has the same.
    """

    parent: int
    session: int
    ticks: int
    image: tuple[bytes, bytes]


def parse_stat(text: bytes) -> Stat:
    """Return the values of a stat file. Raise ValueError or IndexError if it is not one."""
    # The second field is the name in parentheses, which may itself contain spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    ticks = int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
    return Stat(int(fields[1]), int(fields[3]), ticks, (fields[23], fields[25]))


def parse_memory(status: bytes) -> int:
    """Return the bytes of memory that no file backs, from a status file: private memory and shared memory in use.

    Shared memory counts in every process that maps it. 0 for a process that has ended.
    """
    private = _kilobytes(status, b"\nRssAnon:")
    if private is None:  # a kernel or an emulation without the parts
        return (_kilobytes(status, b"\nVmRSS:") or 0) << 10
    return (private + (_kilobytes(status, b"\nRssShmem:") or 0)) << 10


def parse_proportional_memory(rollup: bytes) -> int | None:
    """Return the bytes of memory as of `parse_memory`, but with each page divided by the number of processes that map
    it, from a smaps_rollup file. None if the kernel does not tell."""
    private = _kilobytes(rollup, b"\nPss_Anon:")
    if private is None:
        return None
    return (private + (_kilobytes(rollup, b"\nPss_Shmem:") or 0)) << 10


def _kilobytes(text: bytes, key: bytes) -> int | None:
    start = text.find(key)
    if start < 0:
        return None
    start += len(key)
    return int(text[start : text.index(b"kB", start)])
