"""The descriptors of a rank, and sys.stdin, sys.stdout and sys.stderr for them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection
from contextlib import suppress


def replace_descriptors(stdin: int, stdout: int, stderr: int, kept: Collection[int]) -> None:
    """Let the standard streams lead where these descriptors do. Close all other descriptors that are not in `kept`."""
    for number, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, number)
    close_all_but({0, 1, 2, *kept})


def close_all_but(kept: Collection[int]) -> None:
    """Close all descriptors that are not in `kept`."""
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in kept:
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(number)


def renew(*, unbuffered: bool) -> None:
    """Make sys.stdin, sys.stdout and sys.stderr anew, as the interpreter does. They stay the same objects: imported
    modules may have references to them.

    unbuffered: whether output is not buffered, although the interpreter was started without that option
    """
    unbuffered = unbuffered or isinstance(getattr(sys.__stdout__, "buffer", None), io.FileIO)
    for number, stream in enumerate((sys.__stdin__, sys.__stdout__, sys.__stderr__)):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        raw = io.FileIO(number, "wb" if number else "rb", closefd=False)
        raw.name = ("<stdin>", "<stdout>", "<stderr>")[number]
        stream.__init__(  # type: ignore[misc]
            io.BufferedReader(raw) if not number else raw if unbuffered else io.BufferedWriter(raw),
            encoding=stream.encoding,
            errors=stream.errors,
            newline="\n",
            line_buffering=number == 2 and not unbuffered,
            write_through=unbuffered,
        )
