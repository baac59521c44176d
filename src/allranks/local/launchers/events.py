"""What ranks tell that the engine has not started itself: mpirun's. Each tells of its start and its end in one file."""

from __future__ import annotations

import json
from pathlib import Path

from allranks.local.instances.supervisor import Event


def rank_name(rank: int) -> str:
    """Return the name of a rank among the programs of a step."""
    return f"rank {rank}"


def read(path: Path, offset: int = 0) -> tuple[list[Event], int]:
    """Return the events after an offset in the file (bytes), and the offset of what is not yet there. A line that is
    still being written counts as not there."""
    with open(path, "rb") as file:
        file.seek(offset)
        whole, newline, _ = file.read().rpartition(b"\n")
    told = [json.loads(line) for line in whole.splitlines()]
    events = [
        Event(one["event"], "", one["time"], rank_name(one["rank"]), one.get("code"), pid=one.get("pid"))
        for one in told
    ]
    return events, offset + len(whole) + len(newline)
