"""Launcher events: the starts and exits of ranks that mpirun starts instead of the engine. Ranks write them to a
file."""

from __future__ import annotations

import json
from pathlib import Path

from allranks.local.instances.supervisor import Event


def rank_name(rank: int) -> str:
    """Return the name of a rank's program."""
    return f"rank {rank}"


def read(path: Path, offset: int = 0) -> tuple[list[Event], int]:
    """Return the events after an offset in the file (in bytes), and the offset for the next call. A last line that is
    still being written is left for the next call."""
    with open(path, "rb") as file:
        file.seek(offset)
        whole, newline, _ = file.read().rpartition(b"\n")
    entries = map(json.loads, whole.splitlines())
    events = [Event(entry.pop("event"), "", program=rank_name(entry.pop("rank")), **entry) for entry in entries]
    return events, offset + len(whole) + len(newline)
