"""Run a rank in a process forked from a fork server, in the state that a new process would have."""

import ctypes
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn

from allranks.contract.report import IN_RANK
from allranks.local.forkserver.preloaded import Preloaded, close_all_but
from allranks.local.forkserver.python_program import PythonCommand, leave, resolve
from allranks.local.forkserver.request import Request, take_over


def run(request: Request, descriptors: Sequence[int], preloaded: Preloaded, launchers_python: str) -> NoReturn:
    """Run the requested program in this newly forked process. Replace the process by a new interpreter if the program
    cannot run here, such as a folder.

    descriptors:      the open files, in the order of the request's numbers
    launchers_python: `sys.executable` for launchers, through which their workers are forked
    """
    try:
        os.setsid()
        _renumber(dict(zip(request.descriptors, descriptors, strict=True)))
        close_all_but({*request.descriptors, *preloaded.descriptors})
        take_over(request, preloaded)
        command = resolve(request, preloaded)
        if command is None:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
            os.execve(request.executable, list(request.words), request.environment)
        _set_title(request.words, request.environment)
        os.environ.clear()
        os.environ.update(request.environment)
        _repeat_changes(preloaded)
        if preloaded.output and not request.is_launcher:  # launchers import less
            os.write(2, preloaded.output)
        _restore(request, command, preloaded)
        if request.is_launcher:
            sys.executable = launchers_python
    except BaseException as error:
        with suppress(OSError):
            os.write(2, f"cannot start {request.words[0]}: {error}\n".encode(errors="replace"))
        os._exit(127)
    leave(command.run(), preloaded)


def _renumber(descriptors: dict[int, int]) -> None:
    """Renumber open descriptors. descriptors: the current number of each by its new number"""
    for number in descriptors:
        for other, descriptor in descriptors.items():
            if descriptor == number != other:
                descriptors[other] = os.dup(descriptor)
        if descriptors[number] == number:
            os.set_inheritable(number, True)
        else:
            os.dup2(descriptors[number], number)
            descriptors[number] = number


def _repeat_changes(preloaded: Preloaded) -> None:
    """Repeat, in this process's environment, the changes that the imports made in the fork server's environment."""
    here = ""
    if preloaded.temporary is not None:
        import tempfile  # not in the modules of a script that does not import it

        tempfile.tempdir = None  # of the fork server
        here = tempfile.gettempdir()
    for name, value in preloaded.variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            if preloaded.temporary and value.startswith(f"{preloaded.temporary}{os.sep}"):
                value = here + value.removeprefix(preloaded.temporary)
            os.environ.setdefault(name, value)


def _restore(request: Request, command: PythonCommand, preloaded: Preloaded) -> None:
    """Restore in this forked process the state of a new interpreter after the same imports."""
    environment = request.environment
    _renew_streams(unbuffered="-u" in request.options)
    sys.argv = list(command.arguments)
    sys.orig_argv = list(request.words)
    sys.executable = request.executable
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, command.search_path)
    if IN_RANK in environment:
        with open(environment[IN_RANK], "rb") as file:
            exec(compile(file.read(), file.name, "exec"), {"__name__": IN_RANK})
    _forget_this_package()
    main = ModuleType("__main__")
    vars(main).clear()
    vars(main).update({**preloaded.main, "__builtins__": sys.modules["builtins"]})
    if "__annotations__" in preloaded.main:
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    thread: Any = threading.main_thread()
    thread._set_native_id()  # a fork keeps the parent's
    if "TZ" in environment:
        time.tzset()
    _renew_random_generators()
    _renew_multiprocessing()


def _forget_this_package() -> None:
    """Unload this package, so that the script imports the copy beside it or the installed one."""
    (folder,) = sys.modules["allranks"].__path__
    for name in [name for name in sys.modules if name == "allranks" or name.startswith("allranks.")]:
        del sys.modules[name]
    for path in [path for path in sys.path_importer_cache if path.startswith(folder)]:
        del sys.path_importer_cache[path]


def _renew_random_generators() -> None:
    """Seed the random generators that an import has seeded. Python seeds those of `random` at a fork."""
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()


def _renew_multiprocessing() -> None:
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.ORIGINAL_DIR = os.getcwd()
        process._current_process = type(process._current_process)()  # it has a random key


def _renew_streams(*, unbuffered: bool) -> None:
    """Initialise sys.stdin, sys.stdout and sys.stderr again, as the interpreter does. They stay the same objects:
    imported modules may have references to them.

    unbuffered: whether output is not buffered, although the interpreter was started without that option
    """
    unbuffered = unbuffered or isinstance(getattr(sys.__stdout__, "buffer", None), io.FileIO)
    for number, stream in enumerate((sys.__stdin__, sys.__stdout__, sys.__stderr__)):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        raw = io.FileIO(number, "wb" if number else "rb", closefd=False)
        raw.name = ("<stdin>", "<stdout>", "<stderr>")[number]
        stream.__init__(  # type: ignore[misc]
            io.BufferedReader(raw) if not number else raw if unbuffered else io.BufferedWriter(raw),
            encoding=stream.encoding,
            errors=stream.errors,
            newline="\n",
            line_buffering=number == 2 and not unbuffered,
            write_through=unbuffered,
        )


PR_SET_NAME = 15
PR_SET_MM = 35
PR_SET_MM_MAP = 14
NO_EXECUTABLE = (1 << 32) - 1


class _MemoryMap(ctypes.Structure):
    """struct prctl_mm_map."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in (
            "start_code", "end_code", "start_data", "end_data", "start_brk", "brk", "start_stack",
            "arg_start", "arg_end", "env_start", "env_end",
        )),
        ("auxv", ctypes.c_void_p),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    ]  # fmt: skip


def _set_title(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Set /proc/PID/cmdline, comm and environ of this process to those of a program that was started with these
    arguments and this environment. On kernels that do not permit it, the process keeps those of its parent.

    `ps` and `pkill` then find a rank by its command, at no measurable cost. The package setproctitle does not set
    environ, and would have to be in the environment of each step.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NAME, os.path.basename(os.fsencode(arguments[0]))[:15] + b"\0", 0, 0, 0)
    title = b"".join(os.fsencode(argument) + b"\0" for argument in arguments)
    variables = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    with open("/proc/self/stat", "rb") as file:
        # From the fourth field on, at its number. The second is the name in parentheses.
        fields = [0, 0, 0, 0, *(int(field) for field in file.read().rpartition(b")")[2].split()[1:])]
    libc.malloc.restype = ctypes.c_void_p
    libc.sbrk.restype = ctypes.c_void_p
    area = libc.malloc(len(title) + len(variables))  # used until the process ends
    if not area:
        return
    ctypes.memmove(area, title + variables, len(title) + len(variables))
    middle = area + len(title)
    layout = _MemoryMap(
        start_code=fields[26],
        end_code=fields[27],
        start_stack=fields[28],
        start_data=fields[45],
        end_data=fields[46],
        start_brk=fields[47],
        brk=libc.sbrk(0),
        arg_start=area,
        arg_end=middle,
        env_start=middle,
        env_end=middle + len(variables),
        exe_fd=NO_EXECUTABLE,
    )
    libc.prctl(PR_SET_MM, PR_SET_MM_MAP, ctypes.byref(layout), ctypes.c_ulong(ctypes.sizeof(layout)), 0)
