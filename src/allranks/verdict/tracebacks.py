"""Find the exceptions in the log of a rank, of any launcher, with the line of user code that raised them."""

import re
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache

from allranks.history.log_reader import tail
from allranks.text import plain
from allranks.verdict import signatures

LINES, SIZE = 4000, 1 << 18
"""Maximum number of last lines, and of last bytes, of a log that are searched."""

_PREFIX = re.compile(
    r"(?:\[rank(?P<torch>\d+)\]:[ ]?"  # torch, once the process group exists
    r"|\[(?:\d+,)?(?P<mpi>\d+)\]<std(?:err|out)>:[ ]?"  # mpirun --tag-output, horovodrun
    r"|\[\w*?\d+\]:(?=\S|[ ])[ ]?"  # torchrun --tee, with the local rank
    r"|\(\w[^()]*pid=\d+[^()]*\)[ ])"  # Ray
)
_START = re.compile(r"(?P<indent>\s*)(?:Original )?Traceback \(most recent call last\):$")
FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>\S+))?')
_HEADER = re.compile(r"(?:Graph execution error:|The actor died unexpectedly before finishing this task\.)$")
_OF_OTHERS = re.compile(r": Caught \w+ in \w+ .*\d\.$|ExceptionGroup: |ProcessRaisedException")
_NCCL = re.compile(r"NCCL error in: \S+:\d+, ([^,(]*\w).*")
_LAST_ERROR = re.compile(r"(?:nccl\w+: |Unknown NCCL).*\nLast error:\n(.+)")
"""torch/csrc/distributed/c10d/NCCLUtils.cpp, getNcclErrorDetailStr"""
_EXTRA = re.compile(r"^Collective ops is aborted by: |^The actor.*? because | Worker exit type.*detail:| Some common.*")
_CAUSE_LINE = re.compile(r"(?!\s|<|Detected at|The actor .*because its node).|\s+the actor's node")
"""The line with the cause, below the calls of TensorFlow's graph or the fields of Ray."""
_MARKS = re.compile(r"\s*[\^~]+\s*")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:\([\w.]+\))?(?::|$)")
_SYNTAX = re.compile(r"(?:SyntaxError|IndentationError|TabError): ")
_GROUP = re.compile(r"\s*\+ Exception Group Traceback \(most recent call last\):$")
_MARGIN = re.compile(r"^\s*(?:\| ?|\+[-+ ].*)")
_MEMBER = re.compile(r"(?m)^\s*\+[-+ ].*\n?")
"""The margin of the lines of an exception group, and the line above each of its exceptions."""
_CHAINED = re.compile(r"(?:During handling of the above|The above) exception")
IN_THREAD = "Exception in thread"
_ASIDE = re.compile(rf"{IN_THREAD}|Exception ignored|Error in (?:atexit|sys\.)")
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<|/allranks/|/allranks_steps/|/mpi4py/|/bin/[\w.-]+$")
WRAPPER = re.compile(
    r"(?:torch\.distributed\.elastic\.|torch\.multiprocessing\.spawn\.Process|subprocess\.CalledProcessError|SystemExit\b)"
)
"""An exception of a launcher, which only reports the failure of a process that it started."""
_COMMAND = re.compile(r"subprocess\.CalledProcessError: (?!.*\b(?:python|torchrun|mpirun|accelerate|deepspeed))")
"""The exception for a command that is not a launcher, such as cp."""
_OF_PYTHON = re.compile(
    r"(?:Connection(?:Refused|Reset|Aborted)|BrokenPipe|Timeout)Error\b"
    r"|(?:subprocess|asyncio|concurrent|socket|ssl|http|urllib3?|requests|aiohttp|httpx|azure|botocore)\.\S*"
)
_DISTRIBUTED = re.compile(r"/(?:torch|horovod|deepspeed|tensorflow|ray|mpi4py|oneccl\w*)/")

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
    chained: whether it was raised while the previous exception was handled
    aside:   what Python prints before an exception that ended only a thread, or was ignored; "" for others
    """

    text: str
    where: str = ""
    lines: tuple[str, ...] = ()
    worker: int | None = None
    chained: bool = False
    aside: str = ""

    @property
    def is_consequence(self) -> bool:
        """Whether it follows from the failure of another rank."""
        return signatures.depth(self.text) > 0

    @property
    def is_foreign(self) -> bool:
        """Whether it reports a connection or a time-out outside of the libraries of collectives, such as that of a data
        server, which precedes their reports."""
        frames = [frame["file"] for frame in map(FRAME.match, self.lines) if frame]
        return bool(_OF_PYTHON.match(self.text) and frames) and not any(map(_DISTRIBUTED.search, frames))

    @property
    def is_wrapper(self) -> bool:
        """Whether it only reports the failure of a process that this one started."""
        return bool(WRAPPER.match(self.text)) and not (self.where and _COMMAND.match(self.text))

    @property
    def located(self) -> str:
        """The exception and its line, such as ``KeyError: 'loss' (train.py:10)``."""
        return f"{self.text} ({self.where})" if self.where else self.text


@dataclass(frozen=True)
class LauncherTable:
    """A launcher's report on the worker that it saw failing first.

    time:   whole seconds since the epoch; 0 if unknown
    others: exit codes of other workers that had ended by then, by rank; negative for a signal
    """

    rank: int
    time: float
    exit_code: int
    others: Mapping[int, int] = field(default_factory=dict)


def is_header(text: str) -> bool:
    """Return whether the cause is below the first line of an exception's message, as for TensorFlow, Ray, NCCL, groups,
    and exceptions of another process."""
    return any(pattern.search(text) for pattern in (_HEADER, _NCCL, _OF_OTHERS))


@lru_cache  # a recording names each file thousands of times
def is_library(file: str) -> bool:
    """Return whether a file of a traceback is not the user's code."""
    return _LIBRARY.search(file) is not None


def is_exception(line: str) -> bool:
    """Return whether a line of a log may be the last one of a traceback."""
    return _EXCEPTION.match(_PREFIX.sub("", plain(line), count=1).strip()) is not None


def of_lines(lines: Iterable[str]) -> tuple[Raised, ...]:
    """Return the exception that ended each of the processes that wrote these lines of a log."""
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
        # It is the log of one process, in which torch marks only unhandled exceptions.
        (number,) = workers.keys() - {None}
        workers = {number: every}
    found = (_last_fatal(list(_exceptions(texts)), worker) for worker, texts in workers.items())
    return tuple(each for each in found if each is not None)


def last_lines(log: str) -> list[str]:
    """Return the last lines of a log as text without control characters."""
    return [plain(line) for line in tail(log, LINES, SIZE)]


def of_text(text: str) -> Raised | None:
    """Return the exception of a printed traceback; None if the text is not a traceback."""
    return _last_fatal(list(_exceptions(text.splitlines())), None)


def of_thread(log: str) -> Raised | None:
    """Return the last exception in a log that ended a thread; the process may still wait for that thread."""
    return next((each for each in reversed(list(_exceptions(last_lines(log)))) if each.aside == IN_THREAD), None)


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


def _last_fatal(found: Sequence[Raised], worker: int | None) -> Raised | None:
    """Return the last exception that ended the process; of a chain, the last one that is not a consequence."""
    own = [each for each in found if not each.is_wrapper]
    # A failed command is the only known cause, unless a process has written an exception.
    own = own or [each for each in found if each.where and each.text.startswith("subprocess.CalledProcessError")]
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


def _exceptions(lines: Sequence[str]) -> Iterator[Raised]:
    """Yield the exceptions in the lines of one process, in order."""
    place, chained, aside = 0, False, ""
    while place < len(lines):
        line = lines[place]
        start = _START.match(line)
        if start is None and _GROUP.match(line):
            below = next((n for n in range(place + 1, len(lines)) if not _MARGIN.match(lines[n])), len(lines))
            if (raised := _group_exception(lines[place:below])) is not None:
                yield replace(raised, chained=chained, aside=aside)
            place, chained, aside = below, False, ""
            continue
        if start is None:
            if _SYNTAX.match(line) and place and not lines[place - 1].startswith("Traceback"):
                first = max((n for n in range(max(0, place - 4), place) if FRAME.match(lines[n])), default=place)
                yield Raised(line, _user_line(lines[first:place]), tuple(lines[first : place + 1]))
            if _CHAINED.match(line):
                chained = True
            elif line.strip():
                chained, aside = False, (ignored[0] if (ignored := _ASIDE.match(line)) else "")
            place += 1
            continue
        end = _exception_index(lines, place + 1, len(start["indent"]))
        if end is None:
            return  # truncated: the process was killed while it wrote
        where = _user_line(lines[place : end + 1])
        text, end = _message(lines, end)
        yield Raised(text, where, tuple(lines[place : end + 1]), None, chained, aside)
        place, chained, aside = end + 1, False, ""


def _message(lines: Sequence[str], end: int) -> tuple[str, int]:
    """Return the type and the first line of the message of an exception, and the index of the last line of these."""
    text = lines[end].strip()
    rest = (n for n in range(end + 1, min(end + LINES, len(lines))) if _CAUSE_LINE.match(lines[n]))
    if _HEADER.search(text) and (said := next(rest, None)):
        return _HEADER.sub("", text) + _EXTRA.sub("", lines[said].strip()), said
    if (nccl := _NCCL.search(text)) and (last := _LAST_ERROR.match("\n".join(lines[end + 1 : end + 4]))):
        return f"{text[: nccl.start()]}NCCL {nccl[1]}: {last[1].strip()}", end + 3
    if text.endswith(":") and (filled := [n for n in range(end + 1, len(lines))[:4] if lines[n].strip()]):
        return f"{text} {lines[filled[0]].strip()}", filled[0]  # the message begins with empty lines
    return text, end


def _group_exception(lines: Sequence[str]) -> Raised | None:
    """Return the first exception of a group that is not a consequence, with the text of the group; None if the lines
    are truncated."""
    parts = [[_MARGIN.sub("", line) for line in part.splitlines()] for part in _MEMBER.split("\n".join(lines))]
    titled = [(part, title) for part in parts if (title := next(filter(_EXCEPTION.match, part), ""))]
    found = [next(_exceptions(part), Raised(title, _user_line(part))) for part, title in titled]
    if not found:
        return None
    group, *members = found
    own = [each for each in members if "Group: " not in each.text]
    chosen = next((each for each in own if not each.is_consequence), (own or found)[0])
    text = chosen.text if chosen is group else f"{chosen.text} (in {group.text})"
    return Raised(text, chosen.where or group.where, tuple(lines))


def _exception_index(lines: Sequence[str], place: int, indent: int) -> int | None:
    """Return the index of the exception below the frames of a traceback; None if it is missing."""
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
