"""The traffic of an instance's network."""

from __future__ import annotations

LOOPBACK = b"lo"


def traffic() -> tuple[int, int]:
    """Return the bytes that the network interfaces of this process's network have received and sent, without the
    loopback interface."""
    with open("/proc/self/net/dev", "rb") as file:
        return parse_traffic(file.read())


def parse_traffic(text: bytes) -> tuple[int, int]:
    """Return the bytes received and sent from a file like /proc/net/dev."""
    received = sent = 0
    for line in text.splitlines()[2:]:
        name, _, counters = line.partition(b":")
        if name.strip() != LOOPBACK:
            fields = counters.split()
            received += int(fields[0])
            sent += int(fields[8])
    return received, sent
