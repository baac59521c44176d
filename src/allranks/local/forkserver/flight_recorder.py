"""Write torch's Flight Recorder of a rank to a file: at the rank's end, and with its stack whenever the engine asks.

torch 2.8 and later record the last 2,000 collectives of a process, with gloo too. Only the process can read them. From
the initialisation of its process group on, a thread blocks in open() of a FIFO, so that it holds no file descriptor.
"""

import _thread
import json
import os
import sys
import threading
from contextlib import suppress
from typing import Any

from allranks.contract import report

REQUEST, RECORDING, STACK = ".request", ".recording", ".stack"
"""Suffixes of the FIFO, the recording, and the stack of the main thread, after the path of the report file and the
rank."""

_paths: dict[str, Any] = {}
"""The paths of this process's files without the suffix, each with torch's function that dumps the recording."""


def install() -> None:
    """Record the process group of each process that will be forked from this one, which has imported torch."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    original = getattr(c10d, "_update_default_pg", None)
    if original is None:
        return

    def update(group: Any) -> None:
        original(group)
        with suppress(Exception):  # a training never fails because of it
            file = os.environ.get(report.VARIABLE)
            if group is not None and file and not _paths and group.size() > 1:
                path = f"{file}.{group.rank()}"
                kind = "nccl" if "nccl" in c10d.get_backend(group) else "fr"
                _paths[path] = getattr(sys.modules["torch._C._distributed_c10d"], f"_dump_{kind}_trace")
                _thread.start_new_thread(_serve, (path,))

    c10d._update_default_pg = update


def save() -> None:
    """Write the recording of this process if it has had a process group. Raise nothing."""
    for path, dump in _paths.items():
        with suppress(Exception):
            _write(path + RECORDING, _dump(dump))


def _write(path: str, data: bytes) -> None:
    partial = f"{path}.{_thread.get_ident()}"
    with open(partial, "wb") as file:
        file.write(data)
    os.replace(partial, path)


def _dump(dump: Any) -> Any:
    torch: Any = sys.modules["torch"]
    # To find the lines of generated code, torch would import its compiler, which takes seconds.
    replaced = vars(torch).setdefault("_inductor", _thread)
    try:
        return dump(includeCollectives=True, includeStackTraces=True, onlyActive=False)
    finally:
        if replaced is _thread:
            vars(torch).pop("_inductor", None)


def _serve(path: str) -> None:
    with suppress(OSError):  # a file system without FIFOs
        with suppress(FileExistsError):
            os.mkfifo(path + REQUEST)
        while True:
            os.close(os.open(path + REQUEST, os.O_RDONLY))  # returns when the engine opens it
            _write(path + STACK, json.dumps(_stack()).encode())
            save()


def _stack() -> list[tuple[str, str, int | None]]:
    """Return the calls of the main thread, the innermost first: function, file and line."""
    calls, frame = [], sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        calls.append((frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return calls
