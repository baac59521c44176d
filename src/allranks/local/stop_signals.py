"""Signals to an engine: Ctrl-C, SIGTERM and SIGHUP stop it at any time, and SIGUSR1 requests the cancellation of nodes.

Before there is anything to stop, they end the process as Ctrl-C does. During a run, the run handles them. Python
handles signals on the main thread only; on other threads, nothing changes.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_received: list[signal.Signals] = []


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise KeyboardInterrupt for the signals that stop an engine, for the duration of the block, and ignore SIGUSR1.

    An exception raised by a signal may be lost, for example in a callback of the import system. `check` raises it
    again.
    """
    if not _is_main_thread():
        yield
        return
    before = {number: signal.signal(number, _raise) for number in _stops()}
    before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, _ignore)
    try:
        check()
        yield
    finally:
        _restore(before)
        if not any(handler is _raise for handler in before.values()):
            _received.clear()  # they must not affect later code in this process


def check() -> None:
    """Raise KeyboardInterrupt if a signal within `raised` requested a stop."""
    if _received:
        raise KeyboardInterrupt


@contextlib.contextmanager
def handled(stop: Callable[[signal.Signals], None], cancel: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for the signals that stop an engine and `cancel` for SIGUSR1, on the running loop, instead of any
    other handler, for the duration of the block."""
    import asyncio  # slow, and `allranks --help` does not need it

    if not _is_main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = (*_stops(), signal.SIGUSR1)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in numbers:
            loop.add_signal_handler(number, *((cancel,) if number is signal.SIGUSR1 else (stop, number)))
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
        _restore(before)


def _stops() -> list[signal.Signals]:
    """Return the signals that stop an engine. SIGHUP is not among them if nohup started the process."""
    return [number for number in STOPS if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]


def _raise(number: int, _: object) -> None:
    repeated = bool(_received)
    _received.append(signal.Signals(number))
    # The first signal is being handled. Only a second Ctrl-C may interrupt that.
    if not repeated or number == signal.SIGINT:
        raise KeyboardInterrupt


def _ignore(*_: object) -> None:
    """Do nothing. The default action of the signal would end the process."""


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
