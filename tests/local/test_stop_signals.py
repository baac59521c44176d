"""A signal at any moment of an engine's start ends it in order: no traceback, no process, no run."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from allranks.local import stop_signals

pytestmark = pytest.mark.slow

BOUND = 60
START = """
import os, signal, sys
from pathlib import Path
from allranks.local import engine, run_execution, stop_signals
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
number, moment = int(sys.argv[2]), sys.argv[3]
# A shell may have started the tests with nohup, or in the background.
signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
started = []

def at(place, name):
    before = getattr(place, name)
    def then(*arguments, **options):
        if place is run_execution.Supervisor:
            result = before(*arguments, **options)
            async def signaled():
                os.kill(os.getpid(), number)
                supervisor = await result
                started.append(supervisor._process.pid)
                return supervisor
            return signaled()
        os.kill(os.getpid(), number)
        return before(*arguments, **options)
    setattr(place, name, then)

moments = {
    "the lock is taken": (engine.locks, "hold"),
    "the loop starts": (run_execution.asyncio, "run"),
    "tracking starts": (run_execution.Tracking, "start"),
    "the supervisor starts": (run_execution.Supervisor, "start"),
}
at(*moments[moment])
run_execution.Tracking.tracks = lambda *_: True
plan = Plan("p", Graph((Step("a", "touch ran"),)))
try:
    engine.run(plan, Workspace(Path(sys.argv[1])), Options(instances="loopback"))
except KeyboardInterrupt:
    print("stopped", os.listdir(Path(sys.argv[1]) / "runs") if Path(sys.argv[1]).exists() else [])
for pid in started:
    os.kill(pid, 0)
"""


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("the lock is taken", signal.SIGHUP),
        ("the loop starts", signal.SIGINT),
        ("tracking starts", signal.SIGTERM),
        ("the supervisor starts", signal.SIGINT),
    ],
)
def test_a_signal_while(moment: str, number: signal.Signals, tmp_path: Path) -> None:
    words = [sys.executable, "-c", START, tmp_path / "w", str(int(number)), moment]
    # The pipes end with the last process that has them.
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=BOUND, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stopped []\n", "")
    assert not (tmp_path / "ran").exists()


UNENDING = """
import asyncio, os, signal, subprocess, sys, time
from allranks.local import stop_signals
stop_signals.LAST_SECONDS = 0.1
child = subprocess.Popen(["sleep", "1000"])  # the test's pipes end with it

def wait():
    while True:
        try:
            os.kill(os.getpid(), int(sys.argv[2]))
            time.sleep(1000)
        except KeyboardInterrupt:
            pass

async def run():
    with stop_signals.handled(lambda _: None, lambda: None):
        for _ in range(2):
            os.kill(os.getpid(), int(sys.argv[2]))
        time.sleep(1000) if sys.argv[1] == "the loop is blocked" else await asyncio.Event().wait()

with stop_signals.raised():
    wait() if sys.argv[1] == "no run has started" else asyncio.run(run())
"""


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("no run has started", signal.SIGINT),
        ("the loop is blocked", signal.SIGTERM),
        ("the loop waits for ever", signal.SIGINT),
    ],
)
def test_a_second_signal_ends_what_does_not_end_by_itself_while(moment: str, number: signal.Signals) -> None:
    """Also where a shell has started the process in the background, so that it ignores SIGINT at first."""
    command = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", sys.executable, "-c", UNENDING, moment, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False)
    assert (done.returncode, done.stderr) == (
        130,
        "error: it did not end within 0.1 s: all its processes are killed\n",
    )


def test_an_interrupt_that_is_lost_is_raised_again() -> None:
    def engine() -> None:
        with stop_signals.raised():
            with contextlib.suppress(BaseException):
                signal.raise_signal(signal.SIGINT)
            stop_signals.check()

    with pytest.raises(KeyboardInterrupt):
        engine()
    stop_signals.check()  # it was not meant for what comes later


def test_handlers_are_as_before() -> None:
    numbers = (*stop_signals.STOPS, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]
    with stop_signals.raised():
        assert [signal.getsignal(number) for number in numbers] != before
        signal.raise_signal(signal.SIGUSR1)
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_process_of_nohup_survives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_signals.raised():
            signal.raise_signal(signal.SIGHUP)
            stop_signals.check()
    finally:
        signal.signal(signal.SIGHUP, before)
