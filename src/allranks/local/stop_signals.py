"""Signals to an engine: Ctrl-C, SIGTERM and SIGHUP stop it at any time, and SIGUSR1 requests the cancellation of nodes.

Before there is anything to stop, they end the process as Ctrl-C does. During a run, the run handles them. A second one
always ends the process, whatever it waits for: in order if that takes seconds, else together with its processes. Python
handles signals on the main thread only, so an engine runs there.

The handlers do not depend on those of the process that started this one: nohup, cron, and a shell that starts it in the
background make it ignore SIGINT.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

LAST_SECONDS = 20.0
"""Seconds that a process has to end in order after the second signal. Ranks end at once, and MLflow has 5 s."""

_received: list[signal.Signals] = []
_counted: list[signal.Signals] = []
_timers: list[threading.Timer] = []


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise KeyboardInterrupt for the signals that stop an engine, for the duration of the block, and ignore SIGUSR1.

    An exception raised by a signal may be lost, for example in a callback of the import system. `check` raises it
    again.
    """
    before = {number: signal.signal(number, _raise) for number in _stops()}
    before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, lambda *_: None)  # its default action would end the process
    try:
        check()
        yield
    finally:
        _restore(before)
        if not any(handler is _raise for handler in before.values()):
            # They must not affect later code in this process.
            _received.clear()
            _counted.clear()
            while _timers:
                timer = _timers.pop()
                if sys.exc_info()[0] is not KeyboardInterrupt:  # else the process ends, and may wait for its threads
                    timer.cancel()


def check() -> None:
    """Raise KeyboardInterrupt if a signal within `raised` requested a stop."""
    if _received:
        raise KeyboardInterrupt


@contextlib.contextmanager
def handled(stop: Callable[[signal.Signals], None], cancel: Callable[[], None]) -> Iterator[None]:
    """Call `stop` for the signals that stop an engine and `cancel` for SIGUSR1, on the running loop, instead of any
    other handler, for the duration of the block."""
    import asyncio  # slow, and `allranks --help` does not need it

    loop = asyncio.get_running_loop()
    numbers = (*_stops(), signal.SIGUSR1)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in numbers:
            loop.add_signal_handler(number, *((cancel,) if number is signal.SIGUSR1 else (stop, number)))
            if number is not signal.SIGUSR1:
                # The loop still calls `stop`, but not while this thread waits for something else.
                signal.signal(number, lambda received, _: count(received))
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
        _restore(before)


@contextlib.contextmanager
def counted(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at once for each signal that stops an engine, for the duration of the block."""

    def handle(number: int, _: object) -> None:
        count(number)
        stop()

    before = {number: signal.signal(number, handle) for number in _stops()}
    try:
        yield
    finally:
        _restore(before)


def count(number: int) -> None:
    """Count a signal to stop. After the second one, this process has LAST_SECONDS to end. Handlers call it."""
    _counted.append(signal.Signals(number))
    if len(_counted) == 2:
        _timers.append(threading.Timer(LAST_SECONDS, _end_at_once))
        _timers[-1].daemon = True
        _timers[-1].start()


def _stops() -> list[signal.Signals]:
    """Return the signals that stop an engine. SIGHUP is not among them if nohup started the process."""
    return [number for number in STOPS if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]


def _raise(number: int, _: object) -> None:
    repeated = bool(_received)
    _received.append(signal.Signals(number))
    count(number)
    # The first signal is being handled. Only a second Ctrl-C may interrupt that.
    if not repeated or number == signal.SIGINT:
        raise KeyboardInterrupt


def _end_at_once() -> None:
    """Kill the processes below this one, and exit as after Ctrl-C. The run can be resumed, as after a power failure."""
    from allranks.local.instances.processes import descendants  # `allranks --help` does not need it

    os.write(2, f"error: it did not end within {LAST_SECONDS:g} s: all its processes are killed\n".encode())
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(130)


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)
