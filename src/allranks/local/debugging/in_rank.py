"""Open a debugger in the ranks that a user has selected. A copy of this file is the module `sitecustomize` of a step.

Python imports it before the script, also in the processes that torchrun, mpirun or a shell starts. It imports nothing
of allranks, and debugpy only in a rank that is debugged: the step may have another Python.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import FrameType, ModuleType, TracebackType
from typing import Any

VARIABLE = "ALLRANKS_DEBUG"
SITE, NAME = "sitecustomize", "allranks_debugger"
"""The names of this module: under which Python imports it, and under which conditions of breakpoints find it."""
RANK, FIRST, SOCKET = "rank_{}.json", "post_mortem", "rank_{}.sock"
LAUNCHERS = ("torchrun", "torch", "accelerate", "deepspeed", "ray", "horovodrun", "pip", "debugpy")
"""Scripts, and packages of modules, that start or install other programs. Their own processes are not debugged."""
FOREVER = timedelta(days=30)


class Listener(socket.socket):
    """A listening socket with a path, whose address pydevd reads as a host and a port."""

    def getsockname(self) -> tuple[str, int]:
        return "", 0


class Debugger:
    """The debugger of this process.

    folder:   of the session, with a file for what each rank tells the engine
    settings: the fields of `DebugSession`
    """

    def __init__(self, folder: str, rank: int, settings: Mapping[str, Any]) -> None:
        self.folder, self.rank, self.settings = folder, rank, settings
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.is_open = False
        self.pdb: Any = None

    def start(self) -> None:
        """Make this process stop where the user wants it to."""
        breakpoints = [(os.path.abspath(file), line) for file, line in self.settings["breakpoints"]]
        if self.settings["post_mortem"]:
            sys.excepthook = self.handle_exception
        elif self.settings["terminal"]:
            self.start_pdb(breakpoints)
        else:
            self.listen()
            if not breakpoints:
                self.wait_for_client()
            for number, (file, line) in enumerate(breakpoints):
                self.set_breakpoint(number, file, line)

    def tell(self, state: str, **more: object) -> None:
        """Report a state to the engine: waiting, attached, failed or quit."""
        path = os.path.join(self.folder, RANK.format(self.rank))
        with open(f"{path}.new", "w") as file:
            json.dump({"state": state, "pid": os.getpid(), "folder": os.getcwd(), **more}, file)
        os.replace(f"{path}.new", path)

    def quit(self, *_: object) -> None:
        """Have the engine end this process and the others. By itself, it would end as if the step had failed."""
        self.tell("quit")
        threading.Event().wait()

    def handle_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.__excepthook__(kind, error, trace)
        self.open_at_exception(error)

    def open_at_exception(self, error: BaseException) -> None:
        """Open the debugger at an exception that has ended the script, unless another rank was first."""
        last = trace = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        if last is None or not self.settings["post_mortem"] or os.getpid() != self.process or not self.is_first():
            return
        file = os.path.basename(last.tb_frame.f_code.co_filename)
        place = f"{file}:{last.tb_lineno}, {type(error).__name__}: {error}"
        if self.settings["terminal"]:
            self.connect(place)
            self.pdb.set_quit = int  # the exception ends this process
            self.pdb.reset()
            self.pdb.interaction(None, trace)
            return
        self.listen()
        self.wait_for_client(place)
        self.stop_at_exception(error)

    def is_first(self) -> bool:
        """Return whether no other rank has opened its debugger at an exception."""
        try:
            os.close(os.open(os.path.join(self.folder, FIRST), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def listener(self) -> Listener:
        """Return a socket that listens in the folder of the session, for this user only.

        On a port, every user of the machine could run code in this process. The networks of instances do not matter to
        a socket with a path.
        """
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        path = f"/proc/self/fd/{folder}/{SOCKET.format(self.rank)}"  # the path of a socket may have 107 characters
        try:
            if os.path.lexists(path):
                os.unlink(path)
            listener = Listener(socket.AF_UNIX)
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen()
        finally:
            os.close(folder)
        return listener

    # What follows uses parts of pydevd that debugpy does not offer itself.

    def listen(self) -> None:
        """Start debugpy in this process. Until it waits, nobody is forwarded to it."""
        try:
            self.debugpy().configure(subProcess=False)  # they could not be reached
            importlib.import_module("debugpy.server")  # makes pydevd importable
            import pydevd
            from _pydevd_bundle.pydevd_api import PyDevdAPI

            listener = self.listener()
            pydevd.create_server_socket = lambda host, port: listener  # noqa: ARG005
            self.debugpy().listen(("127.0.0.1", 0), in_process_debug_adapter=True)
        except Exception as error:
            self.tell("failed", reason=f"debugpy cannot be used: {type(error).__name__}: {error}")
            raise
        # Its own would end this process with exit code 0, as if its work were done.
        PyDevdAPI.terminate_process = self.quit

    def debugpy(self) -> Any:
        """Return the package debugpy: that of the step's environment, or else that of the engine."""
        try:
            return importlib.import_module("debugpy")
        except ModuleNotFoundError:
            folder = self.settings["debugpy"]
            path = os.path.join(folder, "__init__.py")
            spec: Any = importlib.util.spec_from_file_location("debugpy", path, submodule_search_locations=[folder])
            module = sys.modules["debugpy"] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module

    def wait_for_client(self, place: str = "") -> bool:
        """Wait for a client, unless there has been one. Return True, for conditions of breakpoints."""
        with self.lock:
            if not self.is_open and os.getpid() == self.process:
                self.is_open = True
                self.tell("waiting", place=place)
                self.debugpy().wait_for_client()
                self.tell("attached")
        return True

    def set_breakpoint(self, number: int, file: str, line: int) -> None:
        """Set a breakpoint before there is a client. Its condition waits for one."""
        import pydevd
        from _pydevd_bundle.pydevd_api import PyDevdAPI

        condition = f"__import__({NAME!r}).debugger.wait_for_client({f'{os.path.basename(file)}:{line}'!r})"
        server = pydevd.get_global_debugger()
        PyDevdAPI().add_breakpoint(
            server, file, "python-line", -1 - number, line, condition, "None", None, "NONE", None, False
        )

    def stop_at_exception(self, error: BaseException) -> None:
        """Show the client an exception that has ended the script."""
        import pydevd
        from _pydevd_bundle.pydevd_api import PyDevdAPI
        from _pydevd_bundle.pydevd_breakpoints import stop_on_unhandled_exception

        server, thread = pydevd.get_global_debugger(), threading.current_thread()
        PyDevdAPI().add_python_exception_breakpoint(
            server, "BaseException", None, None, False, True, False, False, False
        )
        info = server.set_additional_thread_info(thread)
        info.is_tracing += 1
        try:
            stop_on_unhandled_exception(server, thread, info, (type(error), error, error.__traceback__))
        finally:
            info.is_tracing -= 1

    # What follows is for pdb.

    def start_pdb(self, breakpoints: Sequence[tuple[str, int]]) -> None:
        """Have pdb stop at the breakpoints, or else at the first line of the script."""
        if not breakpoints:
            sys.settrace(self.trace_start)
            return
        self.make_pdb()
        self.pdb.reset()
        for file, line in breakpoints:
            self.pdb.set_break(file, line)
        interact = self.pdb.interaction

        def connect(frame: FrameType, trace: TracebackType | None) -> None:
            self.pdb.interaction = interact
            self.connect(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
            interact(frame, trace)

        self.pdb.interaction = connect
        self.pdb.botframe = sys._getframe()
        self.pdb.set_continue()
        sys.settrace(self.pdb.trace_dispatch)

    def trace_start(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG002
        """Connect pdb when the script begins."""
        if frame.f_globals.get("__name__") != "__main__" or frame.f_code.co_name != "<module>":
            return None
        self.connect(os.path.basename(frame.f_code.co_filename))
        self.pdb.set_trace(frame)
        return self.pdb.trace_dispatch

    def make_pdb(self) -> None:
        import pdb

        self.pdb = pdb.Pdb(nosigint=True, readrc=False)
        self.pdb.use_rawinput = False
        self.pdb.set_quit = self.quit

    def connect(self, place: str) -> None:
        """Connect pdb to the terminal of the engine."""
        if self.pdb is None:
            self.make_pdb()
        with self.listener() as listener:
            self.tell("waiting", place=place)
            connection, _ = listener.accept()
        self.pdb.stdin, self.pdb.stdout = connection.makefile("r"), connection.makefile("w")


class HeldTimeouts(importlib.abc.MetaPathFinder):
    """Give process groups of torch a time-out that no debugging session reaches, when it is imported."""

    module = "torch.distributed.distributed_c10d"

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> Any:  # noqa: ARG002
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec: Any = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            module.default_pg_timeout = module.default_pg_nccl_timeout = FOREVER
            module.init_process_group = held(module.init_process_group)
            module.new_group = held(module.new_group)

        spec.loader.exec_module = exec_module
        return spec


def held(function: Any) -> Any:
    """Return a function whose argument `timeout` is ignored."""
    import functools
    import inspect

    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        bound.arguments["timeout"] = FOREVER
        return function(*bound.args, **bound.kwargs)

    return call


def own_rank(environ: Mapping[str, str]) -> int | None:
    """Return the rank of this process: as torchrun and its like count, else as the engine does."""
    reported = re.search(r"_rank_(\d+)\.jsonl$", environ.get("ALLRANKS_REPORT", ""))
    rank = environ.get("RANK") or (reported[1] if reported else "")
    return int(rank) if rank.isdigit() else None


def runs_script(words: Sequence[str]) -> bool:
    """Return whether a command line of Python runs a program of the user."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
        rest = rest[2:] if rest[0] in ("-X", "-W") else rest[1:]
    if not rest or rest[0] == "-c":
        return False
    name = rest[1].split(".")[0] if rest[0] == "-m" and len(rest) > 1 else os.path.basename(rest[0])
    return name not in LAUNCHERS and not re.search(r"/site-packages/(ray|debugpy|torch)/", rest[0])


def import_hidden() -> None:
    """Import the module of the same name that this one hides."""
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != own]
    sys.modules[NAME] = sys.modules.pop(SITE)
    try:
        importlib.import_module(SITE)
    except ModuleNotFoundError as error:
        if error.name != SITE:
            raise
        sys.modules[SITE] = sys.modules[NAME]


def begin() -> None:
    """Start the debugger of this process, if it is a rank that is debugged."""
    global debugger
    import_hidden()
    folder = os.environ.get(VARIABLE)
    with open("/proc/self/cmdline") as file:
        words = file.read().split("\0")[:-1]
    if not folder or not runs_script(words):
        return
    sys.meta_path.insert(0, HeldTimeouts())
    with open(os.path.join(folder, "settings.json")) as file:
        settings = json.load(file)
    rank = own_rank(os.environ)
    if rank is not None and (settings["ranks"] is None or rank in settings["ranks"]):
        del os.environ[VARIABLE]  # its child processes are not debugged on their own
        debugger = Debugger(folder, rank, settings)
        debugger.start()


debugger: Debugger | None = None
if __name__ == SITE:
    begin()
