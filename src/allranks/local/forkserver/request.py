"""A request to fork a Python program, and the check that a forked process would not differ from a new one."""

import marshal
import os
import re
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allranks.local.forkserver.preloaded import Preloaded

PYTHON = re.compile(r"python(3(\.\d+)?)?")
"""The names of Python interpreters."""

LAUNCHERS = frozenset(
    {
        "torchrun",
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate",
        "accelerate-launch",
        "accelerate.commands.launch",
        "accelerate.commands.accelerate_cli",
        "deepspeed",
        "deepspeed.launcher.launch",
        "deepspeed.launcher.runner",
    }
)
"""Programs that start workers with `sys.executable`: the names of their console scripts and modules."""

READ_BY_LIBRARIES = (
    "PYTHON", "LANG", "LC_", "LD_", "GLIBC_", "MALLOC_", "ARROW_", "DNNL_", "FSSPEC_", "GFORTRAN_", "GOMP_", "GOTO_",
    "INTEL_", "I_MPI_", "KINETO_", "KMP_", "MKLDNN_", "MKL_", "NPY_", "OMP_", "ONEDNN_", "OPENBLAS_", "OPENSSL_",
    "PYTORCH_", "TORCH_", "TQDM_",
)  # fmt: skip
"""Prefixes of the variables that libraries in C and C++ read when they are loaded: those of numpy and torch, seen by
getenv(3). tqdm and fsspec look at all variables for theirs."""

READ_LATER = ("TORCH_NCCL_",)
"""Prefixes of such variables that are read when a process group is created. torchrun sets one."""

TEMPORARY = frozenset({"TMPDIR", "TEMP", "TMP"})
"""Variables for temporary files, whose changes take effect in a forked process too."""

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
CREDENTIALS = ("Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp:")
"""Lines of /proc/PID/status that a forked process cannot change."""


@dataclass(frozen=True)
class Request:
    """A request to fork a program.

    pid:         the process id of the client
    executable:  the path of the interpreter
    words:       sys.orig_argv
    options:     the options of the interpreter
    script:      its path; "" for a module
    module:      the module of `python -m`
    arguments:   sys.argv[1:]
    environment: the environment of the program
    mask:        the blocked signals
    descriptors: the numbers of its open files
    """

    pid: int
    executable: str
    words: Sequence[str]
    options: Sequence[str]
    script: str
    module: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    mask: Sequence[int]
    descriptors: Sequence[int]

    @property
    def is_launcher(self) -> bool:
        return (self.module or os.path.basename(self.script)) in LAUNCHERS


def parse(pid: int, data: bytes) -> Request | None:
    """Return the request of a process; None for a program that only a new interpreter can run.

    data: the message of `shim.py`
    """
    program, name, arguments, variables, mask, descriptors = marshal.loads(data)
    environment = {os.fsdecode(key): os.fsdecode(value) for key, value in variables.items()}
    if not PYTHON.fullmatch(os.path.basename(program)):
        interpreter = _shebang(program)
        if interpreter is None:
            return None
        name, arguments, program = interpreter, [program, *arguments], interpreter
    words, options = [name, *arguments], []
    while arguments[:1] == ["-u"]:
        options.append(arguments.pop(0))
    script = module = ""
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        module = arguments[1]
        del arguments[:2]
    elif arguments and not arguments[0].startswith("-"):
        script = arguments.pop(0)
    else:
        return None
    return Request(pid, program, words, options, script, module, arguments, environment, mask, descriptors)


def _shebang(script: str) -> str | None:
    """Return the interpreter in a script's first line if it is that of this process, else None."""
    with open(script, "rb") as file:
        line = file.readline(256)
    path = os.fsdecode(line.removeprefix(b"#!").strip())
    is_own = os.path.dirname(path) == os.path.dirname(sys.executable) and PYTHON.fullmatch(os.path.basename(path))
    return path if line.startswith(b"#!") and is_own else None


def obstacle(request: Request, preloaded: Preloaded) -> str:
    """Return the reason why a process forked from this one would differ from a new one; "" if it would not."""
    environment, own = request.environment, preloaded.environment
    read = {name for name in {*environment, *own} if name.startswith(READ_BY_LIBRARIES)}
    for name in sorted({*preloaded.read, *read} - TEMPORARY):
        same = {own.get(name), preloaded.variables.get(name, own.get(name))}  # a child of another one has the second
        if environment.get(name) not in same and not name.startswith(READ_LATER):
            return f"imports read {name}, which differs"
    if not {0, 1, 2} <= set(request.descriptors) or not preloaded.descriptors.isdisjoint(request.descriptors):
        return "a standard stream is closed, or an open file has the number of one that the imports have opened"
    here, there = "/proc/self", f"/proc/{request.pid}"
    if any(os.readlink(f"{here}/ns/{name}") != os.readlink(f"{there}/ns/{name}") for name in NAMESPACES):
        return "it has namespaces of its own"
    if os.stat(f"{here}/root") != os.stat(f"{there}/root") or _credentials(here) != _credentials(there):
        return "it has another root or other privileges"
    if any(int(line.split()[1], 16) for line in _status(there) if line.startswith(("SigPnd:", "ShdPnd:"))):
        return "it has just got a signal"
    return ""


def _credentials(process: str) -> list[str]:
    return [line for line in _status(process) if line.startswith(CREDENTIALS)]


def _status(process: str) -> list[str]:
    with open(f"{process}/status", encoding="utf-8", errors="replace") as file:
        return file.read().splitlines()


_LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def take_over(request: Request, preloaded: Preloaded) -> None:
    """Set the working directory, limits and signals of this newly forked process to those of the client."""
    asking = f"/proc/{request.pid}"
    status: dict[str, Any] = dict(line.split(":", 1) for line in _status(asking))
    os.chdir(f"{asking}/cwd")
    os.umask(int(status["Umask"], 8))
    for limit in _LIMITS:
        if resource.prlimit(request.pid, limit) != resource.getrlimit(limit):
            resource.setrlimit(limit, resource.prlimit(request.pid, limit))
    if os.sched_getaffinity(request.pid) != os.sched_getaffinity(0):
        os.sched_setaffinity(0, os.sched_getaffinity(request.pid))
    niceness = os.getpriority(os.PRIO_PROCESS, request.pid)
    if niceness != os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    signal.set_wakeup_fd(-1)
    ignored = int(status["SigIgn"], 16)
    for number, handler in preloaded.handlers.items():
        if ignored >> (number - 1) & 1:
            handler = signal.SIG_IGN
        if handler is not None and signal.getsignal(number) != handler:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, request.mask)
