"""Open a debugger in the ranks that a user has selected. A copy of this file is the module `sitecustomize` of a step.

Python imports it before the script, also in the processes that torchrun, mpirun or a shell starts. It imports nothing
of allranks: the step may have another Python.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

VARIABLE, DEBUGGED = "ALLRANKS_DEBUG", "ALLRANKS_DEBUGGED"
"""The folder of the session; set in a rank that is debugged, so that its child processes are not."""
SITE, NAME = "sitecustomize", "allranks_debugger"
"""The name under which Python imports this module, and the name that it has afterwards."""
RANK, SOCKET = "rank_{}.json", "rank_{}.sock"
"""The files of a rank in that folder: its report to the engine, and the socket of its debugger."""
LOCAL = "127.0.0.1"
LAUNCHERS = ("torchrun", "torch", "accelerate", "deepspeed", "ray", "horovodrun", "pip", "debugpy")
"""Scripts, and packages of modules, that start or install other programs. Their own processes are not debugged."""


class Debugger:
    """The debugger of this process.

    folder: the folder of the session
    words:  the command line of this process
    """

    def __init__(self, folder: str, rank: int, words: Sequence[str]) -> None:
        self.folder, self.rank, self.words = folder, rank, words

    def report(self, state: str, **more: object) -> None:
        """Report a state to the engine: waiting, failed or quit."""
        path = os.path.join(self.folder, RANK.format(self.rank))
        with open(f"{path}.new", "w") as file:
            json.dump({"state": state, "pid": os.getpid(), "folder": os.getcwd(), **more}, file)
        os.replace(f"{path}.new", path)

    def listener(self) -> socket.socket:
        """Return a socket that listens in the folder of the session, for this user only.

        On a port, every user of the machine could run code in this process. A socket with a path does not depend on the
        networks of instances.
        """
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        path = f"/proc/self/fd/{folder}/{SOCKET.format(self.rank)}"  # the path of a socket may have 107 characters
        try:
            if os.path.lexists(path):
                os.unlink(path)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            os.chmod(path, 0o600)
            listener.listen()
        finally:
            os.close(folder)
        return listener

    def start_debugpy(self, package: str) -> None:
        """Restart the program of this process under debugpy.

        package: the folder of debugpy beside the engine, for a step whose environment lacks it
        """
        debugpy = ["-m", "debugpy"]
        if importlib.util.find_spec("debugpy") is None:
            debugpy = [package]
            if not os.path.isdir(package):
                self.report("failed", reason="debugpy is not installed in the step's environment")
                return
        with socket.socket() as free:
            free.bind((LOCAL, 0))
            port = free.getsockname()[1]
        with self.listener() as listener:
            if not os.fork():
                relay(listener, port)
            self.report("waiting")
        start = program_index(self.words)
        program = list(self.words[start:])
        if program[0] != "-m":
            program[0] = os.path.abspath(program[0])  # debugpy adds the folder as it is to sys.path
        listen = ["--listen", f"{LOCAL}:{port}", "--wait-for-client", "--configure-subProcess", "False"]
        os.execv(sys.executable, [sys.executable, *self.words[1:start], *debugpy, *listen, *program])

    def start_pdb(self) -> None:
        """Stop with pdb at the first line of the script, on the terminal of the engine."""

        def trace(frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG001
            if frame.f_globals.get("__name__") != "__main__" or frame.f_code.co_name != "<module>":
                return None
            import pdb  # only a rank with pdb needs it

            with self.listener() as listener:
                self.report("waiting")
                connection, _ = listener.accept()
            reader, writer = connection.makefile("r"), connection.makefile("w")
            debugger: Any = pdb.Pdb(stdin=reader, stdout=writer, nosigint=True, readrc=False)
            debugger.set_quit = self.quit
            debugger.set_trace(frame)
            return debugger.trace_dispatch

        sys.settrace(trace)

    def quit(self) -> None:
        """Let the engine end all processes. If this process ended itself, the step would count as failed."""
        self.report("quit")
        threading.Event().wait()


def relay(listener: socket.socket, port: int) -> None:
    """Run as the process that forwards connections to a port of the instance, until its parent ends."""
    parent = os.getppid()
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        threading.Thread(target=forward, args=(listener, lambda _: connect(port)), daemon=True).start()
        while os.getppid() == parent:
            time.sleep(0.5)
    finally:
        os._exit(0)


def connect(port: int) -> socket.socket:
    """Return a connection to a port of the instance, on which debugpy listens or soon will."""
    while True:
        with contextlib.suppress(ConnectionRefusedError):
            # From the same address, a free port could connect to itself.
            return socket.create_connection((LOCAL, port), source_address=("127.0.0.2", 0))
        time.sleep(0.05)


def forward(listener: socket.socket, connect: Callable[[socket.socket], socket.socket]) -> None:
    """Forward the connections to a listening socket until it is shut down.

    connect: returns the connection to forward a client to. If it raises OSError, the client is disconnected.
    """
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        try:
            server = connect(client)
        except OSError:
            client.close()
            continue
        for source, target in ((client, server), (server, client)):
            threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(1 << 16)
            if not data:
                break
            target.sendall(data)
    for end, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            end.shutdown(how)


def find_rank(environ: Mapping[str, str]) -> int | None:
    """Return the rank of this process, as set by torchrun or a similar launcher, else by the engine."""
    reported = re.search(r"_rank_(\d+)\.jsonl$", environ.get("ALLRANKS_REPORT", ""))
    rank = environ.get("RANK") or (reported[1] if reported else "")
    return int(rank) if rank.isdigit() else None


def program_index(words: Sequence[str]) -> int:
    """Return the index of the user's program (a script or -m) in a Python command line; 0 if there is none."""
    start = 1
    while start < len(words) and words[start].startswith("-") and words[start] not in ("-m", "-c"):
        start += 2 if words[start] in ("-X", "-W") else 1
    rest = words[start:]
    if not rest or rest[0] == "-c":
        return 0
    name = rest[1].split(".")[0] if rest[0] == "-m" and len(rest) > 1 else os.path.basename(rest[0])
    is_own = name not in LAUNCHERS and not re.search(r"/site-packages/(ray|debugpy|torch)/", rest[0])
    return start if is_own else 0


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
    """Start the debugger of this process if it is a rank that is debugged."""
    import_hidden()
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    with open("/proc/self/cmdline") as file:
        words = file.read().split("\0")[:-1]
    rank = find_rank(os.environ)
    if rank is None or DEBUGGED in os.environ or not program_index(words):
        return
    with open(os.path.join(folder, "settings.json")) as file:
        settings = json.load(file)
    if settings["ranks"] is None or rank in settings["ranks"]:
        os.environ[DEBUGGED] = str(rank)
        debugger = Debugger(folder, rank, words)
        if settings["terminal"]:
            debugger.start_pdb()
        else:
            debugger.start_debugpy(settings["debugpy"])


if __name__ == SITE:
    begin()
