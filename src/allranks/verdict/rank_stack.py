"""The stack of a rank's main thread, and the collective in which it waits for other ranks."""

import linecache
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from allranks.verdict.tracebacks import FRAME, Raised, is_library

_COLLECTIVES = (
    (re.compile(r"/torch/utils/file_baton\.py:"), "the build of a C++ extension, whose lock another process holds"),
    (re.compile(r"/torch/utils/cpp_extension\.py:"), None),
    (re.compile(r"/torch/distributed/rendezvous\.py:"), "init_process_group"),
    (re.compile(r"/torch/nn/parallel/distributed\.py:"), "DistributedDataParallel"),
    (re.compile(r"/torch/distributed/(?!checkpoint/)"), ""),
    (re.compile(r"/horovod/|/deepspeed/comm/"), ""),
    (re.compile(r"/deepspeed/runtime/zero/partition_parameters\.py:(\w+\.)?wait$"), "ZeRO's all_gather"),
    (
        re.compile(
            r"/tensorflow/python/eager/context\.py:(?:Context\.)?(?:ensure_initialized|(?:enable|configure)_co\w+)$"
        ),
        "the connection to TensorFlow's other tasks",
    ),
    (re.compile(r"/ray/_private/worker\.py:get$"), "ray.get"),
    (re.compile(r"/ray/_private/worker\.py:wait$"), "ray.wait"),
)
"""Patterns of FILE:FUNCTION in which a rank waits for others, with the name of the collective. "" stands for the name
of the function, None for a function that does not wait."""

_MPI = re.compile(
    r"\.(?P<name>I?(?:all(?:gather|reduce|toall)|barrier|bcast|gather|m?probe|recv|reduce|scan|scatter|send|wait)\w*)\(",
    re.IGNORECASE,
)
"""A line that calls a method of mpi4py, which has no frame."""

_COMPUTATIONS = (
    (re.compile(r"/torch/autograd/graph\.py$"), "backward"),
    (re.compile(r"/tensorflow/python/eager/execute\.py$"), "a function of TensorFlow"),
)
"""Files in which a rank computes, or waits in a collective that has no frame of its own."""

_WRAPPERS = frozenset({"wrapper", "wait"})
_MODULE = "/torch/nn/modules/module.py"


@dataclass(frozen=True)
class Frame:
    """A call in a stack. file: absolute; function: with its class if py-spy knows it"""

    function: str
    file: str
    line: int

    @property
    def text(self) -> str:
        """The line of code; "" if the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


@dataclass(frozen=True)
class Stack:
    """The main thread of a process of a rank.

    rank:       of the job
    frames:     the innermost call first; empty while the interpreter exits
    worker:     the rank as counted by a launcher that the rank started; None without one
    holds_gil:  whether it holds the lock of its interpreter without releasing it
    is_stopped: whether a signal such as SIGSTOP has stopped it
    is_idle:    whether it waits in the kernel
    pid:        of the process; 0 if unknown
    uses_mpi:   whether it has loaded mpi4py; True if unknown
    waits_for:  its non-daemon thread, or the worker of its data loader, that it waits for, with its line; "" for none
    command:    the command that it runs before Python has started; "" once it has
    settings:   while it joins a process group: world_size, and the master's hostname and port
    """

    rank: int
    frames: tuple[Frame, ...]
    worker: int | None = None
    holds_gil: bool = False
    is_stopped: bool = False
    is_idle: bool = False
    pid: int = 0
    uses_mpi: bool = True
    waits_for: str = ""
    command: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The rank, as counted by the launcher if there is one."""
        return self.rank if self.worker is None else self.worker

    @property
    def user(self) -> Frame | None:
        """The innermost call of user code."""
        return next((frame for frame in self.frames if not is_library(frame.file)), None)

    @property
    def where(self) -> str:
        """The line of user code, such as ``train.py:10``; "" if there is none."""
        return str(self.user or "")

    @property
    def _calls(self) -> tuple[Frame, ...]:
        """The calls below the innermost user code or module of a model. The calls around it do not wait: torchrun's
        `record` around main(), or DistributedDataParallel around a forward pass."""
        return tuple(takewhile(lambda each: each != self.user and not each.file.endswith(_MODULE), self.frames))

    @property
    def collective(self) -> str:
        """The collective in which it waits for other ranks; "" if it does not."""
        if self.is_stopped:
            return ""
        for pattern, name in _COLLECTIVES:
            calls = [each.function for each in self._calls if pattern.search(f"{each.file}:{each.function}")]
            if calls and name is None:
                return ""
            if calls:
                # The outermost function that has a public name: init_process_group, not what it calls.
                public = [call for call in calls if "._" not in f".{call}" and call.rpartition(".")[2] not in _WRAPPERS]
                return name or (public or calls)[-1]
        if self.uses_mpi and self.frames and self.frames[0] == self.user and (call := _MPI.search(self.frames[0].text)):
            return call["name"]
        return ""

    @property
    def computation(self) -> str:
        """The computation that may contain a collective; "" if there is none."""
        names = (name for pattern, name in _COMPUTATIONS if any(pattern.search(each.file) for each in self._calls))
        return "" if self.is_stopped else next(names, "")

    @property
    def is_of_ray(self) -> bool:
        """Whether it executes a task of Ray, or waits for one."""
        return any(frame.file.endswith("/ray/_private/worker.py") for frame in self.frames)

    @property
    def may_wait(self) -> bool:
        """Whether it waits in a collective, or in a computation that may contain one."""
        return bool(self.collective or self.computation)

    @property
    def is_exiting(self) -> bool:
        """Whether its interpreter is exiting: it has no frames, or waits for threads."""
        if self.is_stopped or self.command:
            return False
        return not self.frames or self.frames[-1].function in ("_shutdown", "_run_exitfuncs")

    def __str__(self) -> str:
        """Return the stack in the format of a traceback."""
        lines = [f'  File "{each.file}", line {each.line}, in {each.function}\n    {each.text}' for each in self.frames]
        return "\n".join((f"Stack of rank {self.number} (most recent call last):", *reversed(lines)))


def of_exception(rank: int, raised: Raised) -> Stack:
    """Return the stack of a rank that gave up waiting, from the traceback in its log."""
    calls = filter(None, map(FRAME.match, reversed(raised.lines)))
    frames = tuple(Frame(call["function"] or "", call["file"], int(call["line"])) for call in calls)
    return Stack(rank, frames, raised.worker, is_idle=True)
