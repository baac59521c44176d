"""The engine's part of a debugging session: listen on this machine, prepare the step, and follow its debuggers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.local.debugging import in_rank
from allranks.local.debugging.relay import LOCAL, Relay, connect
from allranks.plan.walk import without_labels

HELD = {
    "HOROVOD_STALL_CHECK_DISABLE": "1",
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "2592000",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "2592000",
    "ALLRANKS_TIMEOUT_SECONDS": "2592000",
    "ALLRANKS_JOIN_SECONDS": "2592000",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}
"""Variables of a step that is debugged: no library ends a rank that waits for one that is stopped."""


@dataclass
class DebugSession:
    """A debugging session of one step.

    step:        its path. Of a path without the labels of iterations, the first iteration is debugged
    ranks:       that are debugged; None: all
    breakpoints: (file, line), the file relative to the step's code
    terminal:    whether the debugger is pdb, on the terminal of this process; otherwise debugpy
    post_mortem: whether it opens at the first uncaught exception, instead of before the script
    debugpy:     the folder of the package debugpy
    port:        of the first rank, the next rank has the next one; 0: free ones
    """

    step: str
    ranks: tuple[int, ...] | None
    breakpoints: tuple[tuple[str, int], ...] = ()
    terminal: bool = False
    post_mortem: bool = False
    debugpy: str = ""
    port: int = 0
    listeners: dict[int, socket.socket] = field(default_factory=dict)
    _debugged: str = ""
    _relays: dict[int, Relay] = field(default_factory=dict)

    def port_of(self, rank: int) -> int:
        """Return the port of this machine on which the debugger of a rank listens. Raise InputError if it is taken."""
        # Only the first rank that fails is debugged after its end.
        number = 0 if self.post_mortem else rank
        if number not in self.listeners:
            port = self.port + len(self.listeners) if self.port else 0
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((LOCAL, port))
                listener.listen()
            except OSError as error:
                listener.close()
                found = f"port {port} cannot be used: {error.strerror}"
                raise InputError(Problem(f"--port {self.port}", found, "a free port", "omit --port")) from None
            self.listeners[number] = listener
        return int(self.listeners[number].getsockname()[1])

    def concerns(self, path: str) -> bool:
        """Return whether the step at a path of the run is the one that is debugged."""
        return path == self._debugged or (not self._debugged and self.step in (path, without_labels(path)))

    def variables(self, path: str, folder: Path, own: Mapping[str, str]) -> dict[str, str]:
        """Prepare an attempt of the step. Return the variables that its processes get in addition.

        folder: of the step
        own:    the step's own variables
        """
        self._debugged = path
        place = folder / "debug"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        shutil.copy(in_rank.__file__, place / "sitecustomize.py")
        settings = {
            name: getattr(self, name) for name in ("ranks", "breakpoints", "terminal", "post_mortem", "debugpy")
        }
        (place / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        path_of_python = os.pathsep.join(filter(None, (str(place), own.get("PYTHONPATH", ""))))
        return {**HELD, in_rank.VARIABLE: str(place), "PYTHONPATH": path_of_python}

    async def follow(self, folder: Path, note: Callable[[str], None], end: Callable[[], Awaitable[None]]) -> None:
        """Forward the debuggers of the step's ranks to this machine until this is cancelled.

        note: tells the user something
        end:  ends the run, because the user has quit the debugger
        """
        files, known = folder / "debug", dict[Path, str]()
        try:
            while True:
                for file in sorted(files.glob(in_rank.RANK.format("*"))):
                    text = file.read_text(encoding="utf-8")
                    if known.get(file) != text:
                        known[file] = text
                        rank = int(re.sub(r"\D", "", file.stem))
                        if not self._handle(rank, json.loads(text), files, note):
                            await end()
                await asyncio.sleep(0.1)
        finally:
            if not known:
                note(f"no debugger was opened: {self._why_none()}")
            self._close()

    def _handle(self, rank: int, state: Mapping[str, Any], files: Path, note: Callable[[str], None]) -> bool:
        """Handle what a debugger tells. Return False if the run must end."""
        if state["state"] == "quit":
            note(f"the debugger of rank {rank} has ended the run")
        elif state["state"] == "failed":
            note(f"rank {rank}: {state['reason']}")
        elif state["state"] == "attached":
            note(f"a debugger is attached to rank {rank}")
            return True
        else:
            socket = files / in_rank.SOCKET.format(rank)
            at = f" at {state['place']}" if state["place"] else ""
            where = "" if self.terminal else f" for a debugger on {LOCAL}:{self.port_of(rank)}"
            note(f"rank {rank} waits{at}{where}; its code is in {state['folder']}")
            if self.terminal:
                threading.Thread(target=_connect_terminal, args=(socket,), daemon=True).start()
            else:
                self._forward(rank, socket)
            return True
        return False

    def _forward(self, rank: int, socket: Path) -> None:
        self.port_of(rank)  # of torchrun's workers, only the number is known before
        number = 0 if self.post_mortem else rank
        if number in self._relays:
            self._relays[number].target = socket
        else:
            self._relays[number] = Relay(self.listeners[number], socket)

    def _why_none(self) -> str:
        if self.post_mortem:
            return "no exception has ended a rank"
        ranks = "no rank" if self.ranks is None else f"rank {', '.join(map(str, self.ranks))} never"
        did = "reached " + " or ".join(f"{file}:{line}" for file, line in self.breakpoints)
        return f"{ranks} {did if self.breakpoints else 'started a script of Python'}"

    def _close(self) -> None:
        for listener in self.listeners.values():
            listener.shutdown(socket.SHUT_RDWR)  # ends the wait of a relay for connections
            listener.close()
        self._relays.clear()
        self.listeners.clear()


def _connect_terminal(path: Path) -> None:
    """Connect this process's standard input and output to a debugger, by the path of its socket."""
    with connect(path) as connection:

        def send() -> None:
            with contextlib.suppress(OSError):
                for line in sys.stdin:
                    connection.sendall(line.encode())
                connection.shutdown(socket.SHUT_WR)

        threading.Thread(target=send, daemon=True).start()
        with contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                sys.stdout.write(data.decode(errors="replace"))
                sys.stdout.flush()


def breakpoint_of(text: str, code: Path, step: str) -> tuple[str, int]:
    """Return (file, line) of FILE:LINE. Raise InputError if the step's code has no such statement.

    code: the folder of the step's code
    step: its path, for messages
    """
    name, _, number = text.rpartition(":")
    where = f"--break {text}"
    if not name or not number.isdecimal():
        raise InputError(Problem(where, "it is not FILE:LINE", "such as train.py:41"))
    file = code / name
    if not file.is_file():
        paths = (path.relative_to(code) for path in code.rglob("*.py"))
        files = ", ".join(sorted(path.as_posix() for path in paths if not path.parts[0].startswith("allranks")))
        raise InputError(Problem(where, f"the code of step {step} has no {name}", f"one of: {files}"))
    try:
        lines = _lines(compile(file.read_bytes(), str(file), "exec"))
    except (SyntaxError, ValueError) as error:
        raise InputError(Problem(where, f"{name} is not valid Python: {error}")) from None
    if int(number) not in lines:
        near = min(lines, key=lambda line: (abs(line - int(number)), line))
        found = f"no statement starts in line {number}"
        raise InputError(Problem(where, found, "a line with a statement", f"did you mean --break {name}:{near}?"))
    return name, int(number)


def _lines(code: Any) -> set[int]:
    """Return the lines of a code object, and of those within it, that have statements."""
    lines = {line for _, _, line in code.co_lines() if line}
    inner: Collection[Any] = [constant for constant in code.co_consts if hasattr(constant, "co_lines")]
    return lines.union(*map(_lines, inner))
