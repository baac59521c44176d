"""The descriptors of a rank, and sys.stdin, sys.stdout and sys.stderr for them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection


def replace_descriptors(log: int, kept: Collection[int]) -> None:
    """Let stdin be empty and stdout and stderr lead to `log`. Close all other descriptors that are not in `kept`."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number > 2 and number not in kept:
            try:
                os.close(number)
            except OSError:
                continue  # the descriptor of the listing itself


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
