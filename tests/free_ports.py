"""Ports for the processes that tests start, which nothing else on this machine takes before those listen."""

import itertools
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

BLOCK = 100
LOWEST, HIGHEST = 20000, 65000  # below are the ports of Ray's workers

_held: list[socket.socket] = []


def free_port() -> int:
    """Return a port at which nobody listens. No other process of pytest returns the same."""
    for port in itertools.islice(_ports(), BLOCK):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        return port
    raise RuntimeError(f"none of {BLOCK} ports is free")


@cache
def _ports() -> Iterator[int]:
    """The ports of a block that this process holds until it ends, again and again.

    Outside the kernel's own range, from which any connection and any bind to port 0 takes its port: some programs
    import for 10 s before they listen at theirs.
    """
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    blocks = [range(start, start + BLOCK) for start in range(LOWEST, HIGHEST, BLOCK)]
    for block in sorted(blocks, key=lambda block: block[-1] >= first and block[0] <= last):
        holder = socket.socket(socket.AF_UNIX)
        try:
            holder.bind(f"\0allranks-test-ports-{block[0]}")
        except OSError:
            holder.close()
            continue
        _held.append(holder)
        return itertools.cycle(block)
    raise RuntimeError("every block of ports is held by another process")
