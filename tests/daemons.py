"""Processes that the ranks of a test leave behind, and that no process of the test is a parent of."""

import os
import time

import psutil

import bounded


def new_mark() -> str:
    """Return a number of seconds that no other process on this machine sleeps: by it a test finds its own daemons."""
    return f"{os.getpid()}{time.monotonic_ns() % 10**9}"


def sleepers(mark: str) -> list[psutil.Process]:
    """Return the processes of the program sleep with this mark."""
    found = psutil.process_iter(["cmdline", "name"])
    return [process for process in found if process.info["name"] == "sleep" and mark in (process.info["cmdline"] or [])]


def until_gone(mark: str) -> None:
    bounded.until(lambda: sleepers(mark) == [], "a daemon of a rank outlived the run")
