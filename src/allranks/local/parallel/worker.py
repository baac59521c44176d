"""A worker process: it imports the script once, calls `init`, and then `run` with one mini-batch after another."""

from __future__ import annotations

import importlib.util
import inspect
import json
import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from . import tables

PATIENCE = 120.0
"""Seconds that a worker waits for the hub, whose instance may start later."""


def connect(path: str) -> socket.socket | None:
    """Return a connection to the hub; None if the hub has ended or did not start."""
    folder, name = os.path.split(path)
    here = os.getcwd()
    os.chdir(folder)  # the path of a socket may have 107 characters
    try:
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(f"{name}.over") and time.monotonic() < deadline:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(name)
                return connection
            except OSError:
                connection.close()
                time.sleep(0.01)
        return None
    finally:
        os.chdir(here)


def work(connection: socket.socket, settings: dict[str, Any], name: str, entry: str, arguments: Sequence[str]) -> int:
    """Run mini-batches until the hub has no more, and return the process's exit code."""

    def send(*message: object) -> None:
        connection.sendall(json.dumps(message).encode() + b"\n")

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    logging.basicConfig(level=settings["logging_level"])
    try:
        send("start", name)
        try:
            script = _import(entry, arguments)
            run = getattr(script, "run", None)
            if not callable(run):
                send("fatal", f"{entry}: it defines no function run(mini_batch)", "")
                return 0
            if callable(getattr(script, "init", None)):
                script.init()
        except BaseException as error:
            send("fatal", _error_text(error, entry), traceback.format_exc())
            return 0
        send("ready")
        call = _Run(settings, run, entry)
        for line in connection.makefile("rb"):
            order = json.loads(line)
            if order is None:
                break
            send(*call(*order))
        if callable(getattr(script, "shutdown", None)):
            try:
                script.shutdown()
            except Exception:
                traceback.print_exc()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the hub has ended, and has reported the reason
    return 0


class _Run:
    """Calls the run function with mini-batches."""

    def __init__(self, settings: dict[str, Any], run: Callable[..., Any], entry: str) -> None:
        self._settings, self._run, self._entry = settings, run, entry
        self._with_context = _takes_context(run)
        self._data = tables.Data(settings)

    def __call__(self, index: int, items: Any, group: dict[str, Any] | None) -> tuple[Any, ...]:
        """Return the message to the hub: the result of the mini-batch, or the reason why it failed."""
        try:
            batch = self._data.mini_batch(items)
            arguments = [SimpleNamespace(minibatch_index=index, partition_key_value=group)] * self._with_context
            # The default action of the signal ends this process, whatever the function is doing.
            signal.setitimer(signal.ITIMER_REAL, self._settings["timeout"])
            try:
                result = self._run(batch, *arguments)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            written = _text(result)
        except BaseException as error:
            traceback.print_exc()
            return "failed", _error_text(error, self._entry)
        if written is None:
            what = "None" if result is None else f"an object of type {type(result).__name__}"
            found = f"run() returned {what}, not a list or a DataFrame with one element for each item"
            return "fatal", f"{self._batch_name()}: {found}", ""
        count, text = written
        short = f"{self._batch_name()}: run() returned {count} for {len(batch)} items" if count < len(batch) else ""
        return "done", count, len(batch), text if self._settings["append"] else "", short

    def _batch_name(self) -> str:
        code = getattr(self._run, "__code__", None)
        return f"{_shown(code.co_filename)}:{code.co_firstlineno}" if code else self._entry


def _import(entry: str, arguments: Sequence[str]) -> ModuleType:
    """Import the script under its own name, with its arguments and its folder as for a program."""
    path = os.path.abspath(entry)
    sys.argv = [entry, *arguments]
    sys.path.insert(0, os.path.dirname(path))
    return load(os.path.splitext(os.path.basename(path))[0], path)


def load(name: str, path: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{os.path.basename(path)} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _takes_context(run: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(run).parameters.values())
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len([each for each in parameters if each.kind in kinds and each.default is each.empty]) > 1


def _text(result: Any) -> tuple[int, str] | None:
    """Return the number of results, and their lines in the output; None for an unsupported type."""
    if hasattr(result, "to_csv") and hasattr(result, "columns"):
        return len(result), result.to_csv(sep=" ", header=False, index=False)
    if isinstance(result, (list, tuple)) or (hasattr(result, "__array__") and getattr(result, "shape", None) != ()):
        return len(result), "".join(f"{element}\n" for element in result)
    return None


def _error_text(error: BaseException, entry: str) -> str:
    """Return an exception as text, with the innermost line of the step's own code."""
    where = entry
    for frame in traceback.extract_tb(error.__traceback__):
        if os.path.abspath(frame.filename).startswith(os.getcwd() + os.sep):
            where = f"{_shown(frame.filename)}:{frame.lineno}"
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        where = f"{_shown(error.filename)}:{error.lineno}"
    message = (str(error).strip().splitlines() or [""])[0]
    return f"{where}: {type(error).__name__}{': ' if message else ''}{message}"


def _shown(path: str) -> str:
    return os.path.relpath(os.path.abspath(path))
