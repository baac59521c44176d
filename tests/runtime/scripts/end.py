"""Rank argv[1] ends in the way of argv[2]; the others wait for it in a collective."""

import os
import signal
import sys
import threading

from allranks import runtime
from allranks.errors import InputError, Problem


def fail() -> None:
    raise ValueError("the loss is nan")


def interrupt() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts a job in the background without
    os.kill(os.getpid(), signal.SIGINT)


def wrong_input() -> None:
    raise InputError(Problem("--epochs", "-1", "at least 1", "give a positive number"))


def hang_at_exit() -> None:
    import atexit

    from allranks.runtime import clean_exit

    clean_exit.FAILED_EXIT_SECONDS = 0.1
    atexit.register(threading.Event().wait)
    fail()


WAYS = {
    "return": lambda: None,
    "fail": fail,
    "wrong_input": wrong_input,
    "interrupt": interrupt,
    "hang_at_exit": hang_at_exit,
    "exit_0": lambda: sys.exit(0),
    "exit_7": lambda: sys.exit(7),
    "exit_text": lambda: sys.exit("no data today"),
    "memory": lambda: bytearray(1 << 60),
}


def train(ranks: runtime.Ranks) -> None:
    if ranks.rank == int(sys.argv[1]):
        WAYS[sys.argv[2]]()
    elif sys.argv[2] == "fail":
        ranks.barrier()


if __name__ == "__main__":
    runtime.main(train)
