"""Evictions of real ranks: all save at the same step, under every strategy, whichever ranks are asked to end."""

import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from allranks.contract import report
from allranks.contract.pytorch import PyTorch
from allranks.runtime.clean_exit import EVICTED

pytestmark = pytest.mark.slow

FIRST = 30
"""The step of evict.py in which its ranks are asked to end."""


@pytest.mark.parametrize(
    ("strategy", "who"),
    [
        ("ddp", "0,1,2"),
        ("deepspeed", "0,2"),
        pytest.param("horovod", "2", marks=pytest.mark.skipif(not find_spec("horovod"), reason="no horovod")),
    ],
)
def test_all_ranks_save_and_end_at_the_same_step(start: Callable, strategy: str, who: str) -> None:
    ended = start("evict.py", strategy, "evict", who, distribution=PyTorch(3)).wait()
    assert [rank.code for rank in ended] == [EVICTED] * 3, ended
    first, *others = [rank.stdout.split()[-1] for rank in ended]
    assert others == [first] * 2
    # The rank that is asked waits for the others at its next step, and they cannot go on without it. The thread that
    # asks may get a core only some steps later.
    assert FIRST < int(first) <= FIRST + 10
    notes = [note.text for note in ended[0].of(report.Note)]
    assert any(f"saved a checkpoint at step {first}" in text for text in notes)
    assert not any(rank.of(report.Failure) for rank in ended)


def test_all_ranks_leave_a_validation_and_save_its_step(start: Callable) -> None:
    ended = start("evict.py", "fsdp", "validate", "1", distribution=PyTorch(2)).wait()
    assert [rank.code for rank in ended] == [EVICTED] * 2, ended
    assert [rank.stdout.split() for rank in ended] == [[str(FIRST + 1)]] * 2


def test_all_ranks_save_at_the_same_steps_by_the_clock(start: Callable) -> None:
    ended = start("evict.py", "ddp", "minutes", distribution=PyTorch(2)).wait()
    assert [rank.code for rank in ended] == [0, 0], ended
    assert ended[0].stdout == ended[1].stdout
    saves = [int(step) for step in ended[0].stdout.split()]
    assert len(saves) == 3
    assert saves == sorted(set(saves))


def test_a_forked_process_ends_at_its_first_sigterm() -> None:
    """As a DataLoader ends its workers."""
    program = """
import os, signal, time
from allranks.runtime.clean_exit import Eviction
eviction = Eviction()
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.write(writer, b"1")  # a signal that arrives during the fork itself is lost
    for _ in range(1000):
        time.sleep(0.05)
    os._exit(1)
os.read(reader, 1)
os.kill(child, signal.SIGTERM)
_, status = os.waitpid(child, 0)
print(os.WTERMSIG(status), eviction.requested)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == f"{int(signal.SIGTERM)} False\n"


SIGTERMS = """
import os, signal, sys, time
from allranks.runtime import clean_exit
first, second = clean_exit.Eviction(), clean_exit.Eviction()
os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), signal.SIGTERM)
print(first.requested, second.requested, flush=True)
clean_exit.REPEATED_SECONDS = -1
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""


def test_a_repeated_sigterm_is_the_same_request_and_a_later_one_ends_the_process() -> None:
    """torchrun passes on the signal that its ranks may have received too. Each object is told."""
    ended = subprocess.run([sys.executable, "-c", SIGTERMS], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "True True\n", ended.stderr
    assert ended.returncode == -signal.SIGTERM
