"""The report file, in which a training process reports its progress to the engine.

The variable ALLRANKS_REPORT is the path of the file, one per rank. If it is not set, nothing is written. Each event is
one line of JSON, appended with one write, so that a reader can follow the file while it grows.
"""

from __future__ import annotations

import json
import os
import time as clock
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

VARIABLE = "ALLRANKS_REPORT"


@dataclass(frozen=True)
class Progress:
    """Training has reached a step.

    total:   number of steps of the training; None if unknown
    metrics: by name, the values at this step
    time:    seconds since the epoch, here and below
    """

    step: int
    total: int | None = None
    metrics: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    epoch: int | None = None
    time: float = field(default_factory=clock.time)


@dataclass(frozen=True)
class Failure:
    """An exception ended this rank: its type's name, its message, and the traceback as Python prints it."""

    type: str
    message: str
    traceback: str
    time: float = field(default_factory=clock.time)


@dataclass(frozen=True)
class Note:
    """A message for the user."""

    text: str
    time: float = field(default_factory=clock.time)


@dataclass(frozen=True)
class Finished:
    """This process has finished its work. Only the cleanup of libraries and the interpreter remains.

    pid: its process id, as the process itself sees it
    """

    pid: int = field(default_factory=os.getpid)
    time: float = field(default_factory=clock.time)


Event: TypeAlias = Progress | Failure | Note | Finished

KINDS: Mapping[str, type[Event]] = MappingProxyType(
    {"progress": Progress, "failure": Failure, "note": Note, "finished": Finished}
)


def append(event: Event, environ: Mapping[str, str] = os.environ) -> None:
    """Append an event to the file ALLRANKS_REPORT. Raise nothing: a failed report must not end a training."""
    append_all([event], environ)


def append_all(events: Iterable[Event], environ: Mapping[str, str] = os.environ) -> None:
    """Append events with one write. Raise nothing, as `append`; an event that cannot be written is left out."""
    path = environ.get(VARIABLE)
    if not path:
        return
    try:
        # Begin a new line, because a full disk may have cut off the previous write.
        data = "".join(f"\n{line}\n" for line in map(_line, events) if line is not None).encode()
        if not data:
            return
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            os.write(file, data)
        finally:
            os.close(file)
    except (OSError, ValueError):
        return


def read(path: str | os.PathLike[str], offset: int = 0) -> tuple[list[Event], int]:
    """Return the events after an offset (in bytes), and the offset for the next call.

    A last line that is still being written is left for the next call. Incomplete lines and events of an unknown kind
    are skipped. A missing file has no events."""
    try:
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], offset
    complete = data[: data.rfind(b"\n") + 1]
    events = (_parsed(line) for line in complete.splitlines())
    return [event for event in events if event is not None], offset + len(complete)


def _line(event: Event) -> str | None:
    kind = next(name for name, kind in KINDS.items() if isinstance(event, kind))
    try:
        return json.dumps({"event": kind, **_plain(event)}, default=float)
    except Exception:  # a metric's conversion to float may raise anything
        return None


def _plain(event: Event) -> dict[str, Any]:
    """Return an event's fields. A metric may be any object that float() accepts, such as a tensor of one element."""
    if isinstance(event, Progress):
        return {**vars(event), "metrics": {name: float(value) for name, value in event.metrics.items()}}
    return asdict(event)


def _parsed(line: bytes) -> Event | None:
    try:
        record = json.loads(line)
        kind = record["event"]
        if kind == "progress":
            return Progress(
                step=int(record["step"]),
                total=_optional(record["total"]),
                metrics={str(name): float(value) for name, value in record["metrics"].items()},
                epoch=_optional(record["epoch"]),
                time=float(record["time"]),
            )
        if kind == "failure":
            return Failure(
                type=str(record["type"]),
                message=str(record["message"]),
                traceback=str(record["traceback"]),
                time=float(record["time"]),
            )
        if kind == "note":
            return Note(str(record["text"]), float(record["time"]))
        if kind == "finished":
            return Finished(int(record["pid"]), float(record["time"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        pass
    return None


def _optional(value: Any) -> int | None:
    return None if value is None else int(value)
