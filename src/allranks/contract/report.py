"""The report file, in which a training process reports its progress to the engine.

The variable ALLRANKS_REPORT is the path of the file, one per rank. If it is not set, nothing is written. Each event is
one line of JSON, appended with one write, so that a reader can follow the file while it grows.

A parallel step runs this file with its own Python, which may be 3.7.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import re
import sys
import time as clock
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # novermin
    from typing import TypeAlias

VARIABLE = "ALLRANKS_REPORT"

_LEFT_OUT = " … ({:,} characters left out) … "
_arrivals: deque[tuple[int, float]] = deque(maxlen=2000)

IN_RANK = "ALLRANKS_IN_RANK"
"""Path of a Python file that each forked rank executes before its program."""


@dataclass(frozen=True)
class Progress:
    """Training has reached a step.

    total:   number of steps of the training; None if unknown
    metrics: by name, the values at this step
    time:    seconds since the epoch, here and below
    """

    step: int
    total: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    epoch: int | None = None
    time: float = field(default_factory=clock.time)


@dataclass(frozen=True)
class Failure:
    """An exception ended this rank: its type's name, its message, and the traceback as Python prints it.

    rank: as counted by a launcher of this process, such as torchrun; None if RANK is not set
    pid:  the process id in the process's own namespace
    """

    type: str
    message: str
    traceback: str
    time: float = field(default_factory=clock.time)
    rank: int | None = None
    pid: int = field(default_factory=os.getpid)


@dataclass(frozen=True)
class Note:
    """A message for the user."""

    text: str
    time: float = field(default_factory=clock.time)


@dataclass(frozen=True)
class Finished:
    """This process has finished its work. Only the cleanup of libraries and the interpreter remains.

    pid:      the process id in the process's own namespace
    arrivals: the numbers and times of its last calls of `arrived`
    """

    pid: int = field(default_factory=os.getpid)
    time: float = field(default_factory=clock.time)
    arrivals: tuple[tuple[int, float], ...] = field(default_factory=lambda: tuple(_arrivals))


@dataclass(frozen=True)
class Reached:
    """This process waits at a training step for a fault."""

    step: int
    time: float = field(default_factory=clock.time)


Event: TypeAlias = "Progress | Failure | Note | Finished | Reached"

KINDS: Mapping[str, type[Event]] = {
    kind.__name__.lower(): kind for kind in (Progress, Failure, Note, Finished, Reached)
}


def arrived() -> None:
    """Record that this rank, which computes on the CPU, begins to wait in a collective that torch's Flight Recorder
    does not record."""
    _arrivals.append((_arrivals[-1][0] + 1 if _arrivals else 0, clock.time()))


def append(event: Event, environ: Mapping[str, str] = os.environ) -> None:
    """Append an event to the file ALLRANKS_REPORT. Raise nothing: a failed report must not end a training."""
    append_all([event], environ)


def append_all(events: Iterable[Event], environ: Mapping[str, str] = os.environ) -> None:
    """Append events with one write. Raise nothing; skip events that cannot be written."""
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


def failure_of(error: BaseException, message: str | None = None) -> Failure:
    """Return the event of an exception that ends this process. message: by default its own"""
    kind, rank = type(error), os.environ.get("RANK", "")
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if message is None:
        try:
            message = str(error)
        except Exception:  # of the user's code; Python prints this text instead
            message = "<exception str() failed>"
    text = "".join(traceback.format_exception(kind, error, error.__traceback__))
    return Failure(name, message, text, rank=int(rank) if rank.isdecimal() else None)


def exit_code_of(error: SystemExit) -> int:
    """Return the exit code of a process that this exception ends. Print its text to stderr, as the interpreter does."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    builtins.print(error.code, file=sys.stderr)  # a script may have replaced print
    return 1


def read(path: str | os.PathLike[str], offset: int = 0) -> tuple[list[Event], int]:
    """Return the events after an offset (in bytes), and the offset for the next call.

    A last line that is still being written is read by the next call. Incomplete lines and events of an unknown kind are
    skipped. A missing file has no events."""
    try:
        size = os.stat(path).st_size  # 0 of a device, whose end is never reached
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            file.seek(offset)
            data = file.read(max(size - offset, 0))
    except (FileNotFoundError, io.UnsupportedOperation):  # a pipe has no offsets
        return [], offset
    complete = data[: data.rfind(b"\n") + 1]
    events = (_parsed(line) for line in complete.splitlines())
    return [event for event in events if event is not None], offset + len(complete)


def truncated(text: str, most: int = 8192) -> str:
    """Return the text, without its middle if it has more than `most` characters.

    It is cut between words if possible, because half of a secret would not be recognised.
    """
    if len(text) <= most:
        return text
    half, near = (most - len(_LEFT_OUT.format(len(text)))) // 2, most // 8
    first = max(half - near + 1 + text[half - near : half].rfind(" "), half - near)
    rest = text[-half : near - half].find(" ")
    last = len(text) - half + (rest if rest >= 0 else near)
    return text[:first] + _LEFT_OUT.format(last - first) + text[last:]


def _line(event: Event) -> str | None:
    try:
        # A metric may be any object that float() accepts, such as a tensor of one element.
        plain = {**vars(event), "metrics": _metrics(event.metrics)} if isinstance(event, Progress) else asdict(event)
        fields = {name: truncated(value) if isinstance(value, str) else value for name, value in plain.items()}
        return json.dumps({"event": type(event).__name__.lower(), **fields}, default=float)
    except Exception:  # a metric's conversion to float may raise anything
        return None


def _parsed(line: bytes) -> Event | None:
    try:
        record = json.loads(line)
        kind = KINDS[record["event"]]
        return kind(
            **{each.name: _CONVERSIONS[each.name](record[each.name]) for each in fields(kind) if each.name in record}
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _optional(value: Any) -> int | None:
    return None if value is None else int(value)


def _metrics(values: Any) -> dict[str, float]:
    return {str(name): float(value) for name, value in values.items()}


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("type", "message", "traceback", "text"), lambda value: truncated(str(value))),
    "step": int,
    "pid": int,
    "total": _optional,
    "rank": _optional,
    "epoch": _optional,
    "metrics": _metrics,
    "time": float,
    "arrivals": lambda values: tuple((int(number), float(moment)) for number, moment in values),
}
"""The conversion of each field of an event from JSON."""


FULL_DISK_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
"""The error numbers of a full disk."""

# torch.save to a path does not report the system's error. Its writer reports a short or failed write: see
# caffe2/serialize/inline_container.cc of PyTorch, seen with 2.13, and innnky/so-vits-svc#46.
FULL_DISK = re.compile(
    "|".join([*(re.escape(os.strerror(number)) for number in FULL_DISK_NUMBERS), r"PytorchStreamWriter failed writing"])
    + r"|inline_container\.cc:\d+\] \. unexpected pos \d+ vs \d+"
)


def tells_of_full_disk(message: str) -> bool:
    """Return whether the message of an error, or a line of a log, reports a full disk."""
    return FULL_DISK.search(message) is not None
