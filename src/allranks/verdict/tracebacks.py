"""Find the exceptions in the log of a rank, of any launcher, with the line of user code that raised them."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache

from allranks.runs.formatting import plain
from allranks.runs.log_reader import tail
from allranks.verdict import signatures

LINES = 4000
"""How many of the last lines of a log are searched."""

SIZE = 1 << 18
"""How many of its last bytes."""

_PREFIX = re.compile(
    r"(?:\[rank(?P<torch>\d+)\]:[ ]?"  # torch, once the process group exists
    r"|\[(?:\d+,)?(?P<mpi>\d+)\]<std(?:err|out)>:[ ]?"  # mpirun --tag-output, horovodrun
    r"|\[\w*?\d+\]:(?=\S|[ ])[ ]?"  # torchrun --tee, with the local rank
    r"|\(\w[^()]*pid=\d+[^()]*\)[ ])"  # Ray
)
_START = re.compile(r"(?P<indent>\s*)(?:Original )?Traceback \(most recent call last\):$")
FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?')
_HEADER = re.compile(r"(?:Graph execution error:|The actor died unexpectedly before finishing this task\.)$")
_NCCL = re.compile(r"NCCL error in: \S+:\d+, ([^,(]*\w).*")
_LAST_ERROR = re.compile(r"(?:nccl\w+: |Unknown NCCL).*\nLast error:\n(.+)")
"""torch/csrc/distributed/c10d/NCCLUtils.cpp, getNcclErrorDetailStr"""
_EXTRA = re.compile(r"^Collective ops is aborted by: |^The actor.*? because | Worker exit type.*detail:| Some common.*")
_SAID = re.compile(r"(?!\s|<|Detected at|The actor .*because its node).|\s+the actor's node")
"""The line with the cause, below the calls of TensorFlow's graph or Ray's fields."""
_MARKS = re.compile(r"\s*[\^~]+\s*")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:\([\w.]+\))?(?::|$)")
_SYNTAX = re.compile(r"(?:SyntaxError|IndentationError|TabError): ")
_CHAINED = re.compile(r"(?:During handling of the above|The above) exception")
_ASIDE = re.compile(r"Exception (?:in thread|ignored)|Error in (?:atexit|sys\.)")
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<|/allranks/|/allranks_steps/|/mpi4py/|/bin/[\w.-]+$")
WRAPPER = re.compile(
    r"(?:torch\.distributed\.elastic\.|torch\.multiprocessing\.spawn\.Process|subprocess\.CalledProcessError|SystemExit\b)"
)
"""An exception of a launcher, which only reports that a process that it started has failed."""

_ROW = r"rank\s*:\s*(?P<rank>\d+) \(local_rank: \d+\)\s+exitcode\s*:\s*(?P<code>-?\d+)"
_ELASTIC = re.compile(
    r"(?:Failures:(?P<others>(?s:.*?)))?Root Cause \(first observed failure\):\s*\[\d+\]:\s*"
    rf"time\s*:\s*(?P<time>\d{{4}}-\d\d-\d\d_\d\d:\d\d:\d\d)\s+host\s*:.*\s+{_ROW}"
)
"""The table of torchrun, and of accelerate, which uses it."""
_FORCED = "forcefully exiting via"
"""Logged by torchrun before it sends SIGKILL to workers that SIGTERM does not end."""

_MPIRUN = re.compile(
    r"mpirun noticed that process rank (?P<rank>\d+) with PID \d+ on node \S+\s+exited on\s+signal (?P<signal>\d+)"
    r"|Process name: \[\[\d+,\d+\],(?P<process>\d+)\]\s+Exit code:\s+(?P<code>\d+)"
)
"""orte/tools/orterun/help-orterun.txt"""


@dataclass(frozen=True)
class Raised:
    """An exception in a log.

    text:    type and the first line of the message
    where:   the line of user code that raised it, such as ``train.py:10``; "" without one
    lines:   of the traceback, up to `text`
    worker:  the rank in the prefix of its lines; None without one
    chained: whether it was raised while the exception before it was handled
    aside:   whether it ended only a thread, or was ignored
    """

    text: str
    where: str = ""
    lines: tuple[str, ...] = ()
    worker: int | None = None
    chained: bool = False
    aside: bool = False

    @property
    def is_consequence(self) -> bool:
        """Whether it follows from the failure of another rank."""
        return signatures.depth(self.text) > 0


@dataclass(frozen=True)
class LauncherTable:
    """What a launcher reports of the worker that it saw failing first.

    time:   seconds since the epoch, whole ones; 0 if it is not known
    others: the exit codes of other workers that had ended by then, by rank; negative for a signal
    """

    rank: int
    time: float
    exit_code: int
    others: Mapping[int, int] = field(default_factory=dict)


def is_header(text: str) -> bool:
    """Return whether the first line of an exception's message lacks the cause: TensorFlow, Ray, NCCL say it below."""
    return (_HEADER.search(text) or _NCCL.search(text)) is not None


@lru_cache  # a recording has each of its files thousands of times
def is_library(file: str) -> bool:
    """Return whether a file of a traceback is no code of the user."""
    return _LIBRARY.search(file) is not None


def of_lines(lines: Iterable[str]) -> tuple[Raised, ...]:
    """Return the exception that ended each of the processes that wrote these lines of a log; none if it has none."""
    workers: dict[int | None, list[str]] = {}
    every: list[str] = []
    for line in lines:
        prefix = _PREFIX.match(line)
        if prefix is None:
            workers.setdefault(None, []).append(line)
        else:
            number = prefix["torch"] or prefix["mpi"]
            workers.setdefault(int(number) if number else None, []).append(line[prefix.end() :])
        every.append(line[prefix.end() :] if prefix else line)
    if len(workers) == 2 and None in workers:
        # The log of one process, of which torch marks only what it does not handle.
        (number,) = workers.keys() - {None}
        workers = {number: every}
    found = (_fatal(list(_raised(texts)), worker) for worker, texts in workers.items())
    return tuple(each for each in found if each is not None)


def last_lines(log: str) -> list[str]:
    """Return the last lines of a log as text without control characters."""
    return [plain(line) for line in tail(log, LINES, SIZE)]


def of_text(text: str) -> Raised | None:
    """Return the exception of a traceback as Python prints it; None if the text is none."""
    return _fatal(list(_raised(text.splitlines())), None)


def launcher_table(lines: Sequence[str]) -> LauncherTable | None:
    """Return the last table of a launcher in a log."""
    text = "\n".join(_PREFIX.sub("", line, count=1) for line in lines)
    tables = list(_ELASTIC.finditer(text))
    if not tables:
        said = _MPIRUN.search(text)
        return said and LauncherTable(
            int(said["rank"] or said["process"]), 0.0, int(said["code"] or -int(said["signal"]))
        )
    last = tables[-1]
    time = datetime.strptime(last["time"], "%Y-%m-%d_%H:%M:%S").timestamp()
    others = {int(row["rank"]): int(row["code"]) for row in re.finditer(_ROW, last["others"] or "")}
    if _FORCED in text:
        others = {rank: code for rank, code in others.items() if code != -signal.SIGKILL}
    return LauncherTable(int(last["rank"]), time, int(last["code"]), others)


def _fatal(found: Sequence[Raised], worker: int | None) -> Raised | None:
    """Return the last exception that ended the process. In a chain of them, the last one that is not a consequence."""
    own = [each for each in found if not WRAPPER.match(each.text)]
    last = next((each for each in reversed(own) if not each.aside), None) or (own[-1] if own else None)
    if last is None:
        return None
    place = len(own) - 1 - own[::-1].index(last)
    chosen = last
    while chosen.is_consequence and own[place].chained and place > 0:
        place -= 1
        if not own[place].is_consequence:
            chosen = own[place]
    return replace(chosen, worker=worker)


def _raised(lines: Sequence[str]) -> Iterator[Raised]:
    """Yield the exceptions in the lines of one process, in their order."""
    place, chained, aside = 0, False, False
    while place < len(lines):
        line = lines[place]
        start = _START.match(line)
        if start is None:
            if _SYNTAX.match(line) and place and not lines[place - 1].startswith("Traceback"):
                first = max((n for n in range(max(0, place - 4), place) if FRAME.match(lines[n])), default=place)
                yield Raised(line, _user_line(lines[first:place]), tuple(lines[first : place + 1]))
            if _CHAINED.match(line):
                chained = True
            elif line.strip():
                chained, aside = False, bool(_ASIDE.match(line))
            place += 1
            continue
        end = _end(lines, place + 1, len(start["indent"]))
        if end is None:
            return  # cut off: the process was killed while it wrote
        text, where = lines[end].strip(), _user_line(lines[place : end + 1])
        below = (n for n in range(end + 1, min(end + LINES, len(lines))) if _SAID.match(lines[n]))
        if _HEADER.search(text) and (said := next(below, None)):
            end = said
            text = _HEADER.sub("", text) + _EXTRA.sub("", lines[end].strip())
        elif (nccl := _NCCL.search(text)) and (last := _LAST_ERROR.match("\n".join(lines[end + 1 : end + 4]))):
            end += 3
            text = f"{text[: nccl.start()]}NCCL {nccl[1]}: {last[1].strip()}"
        yield Raised(text, where, tuple(lines[place : end + 1]), None, chained, aside)
        place, chained, aside = end + 1, False, False


def _end(lines: Sequence[str], place: int, indent: int) -> int | None:
    """Return the place of the exception below the frames of a traceback; None if it is missing."""
    end = None
    while place < len(lines):
        line = lines[place]
        if len(line) - len(line.lstrip()) <= indent and _EXCEPTION.match(line.strip()):
            end = place
            # An exception from another process has the frames of that process in its message.
            following = place + 1
            while following < len(lines) and _MARKS.fullmatch(lines[following]):
                following += 1
            if following < len(lines) and FRAME.match(lines[following]):
                place = following
                continue
            return end
        if _START.match(line):
            return end
        place += 1
    return end


def _user_line(lines: Iterable[str]) -> str:
    """Return the last line of user code in a traceback, ``FILE:LINE``."""
    frames = [frame for frame in map(FRAME.match, lines) if frame and not is_library(frame["file"])]
    return f"{frames[-1]['file'].rpartition('/')[2]}:{frames[-1]['line']}" if frames else ""
