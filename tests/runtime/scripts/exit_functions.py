"""What a program expects at its end: exit functions, threads, output."""

import atexit
import threading
from concurrent.futures import ThreadPoolExecutor

from allranks import runtime

go_on = threading.Event()


def slow_thread() -> None:
    go_on.wait()
    print("thread", end=" ")


def train(_: runtime.Ranks) -> None:
    atexit.register(print, "exit function", end=" ")
    ThreadPoolExecutor(2).submit(print, "pool", end=" ").result()  # its threads idle from here on
    threading.Thread(target=slow_thread).start()
    threading.Timer(0.1, go_on.set).start()


if __name__ == "__main__":
    runtime.main(train)
