"""Standard streams that can always be written: closed ones are replaced, and so are characters that an encoding lacks,
and a reader that goes away does not end a run."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO

_GONE = (errno.EPIPE, errno.EIO)
"""Errors of a stream without a reader: a pipe, or a terminal that was closed."""


def prepare() -> None:
    """Make the standard streams usable. Call this before anything opens a file.

    A closed stream is replaced by /dev/null: otherwise the next opened file would get its number, and printed text
    would be written into that file. A character that the encoding of a stream lacks becomes a question mark. Messages
    without a reader are discarded.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY), True)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.stderr = _unbroken(sys.stderr, 2)


@contextlib.contextmanager
def unbroken() -> Iterator[None]:
    """Discard text that is printed to standard output after its reader has gone, instead of raising an error."""
    before = sys.stdout
    sys.stdout = _unbroken(before, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stdout = before


class _Unbroken(io.FileIO):
    """A file that is replaced by /dev/null when its reader goes away."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError as error:
            if error.errno not in _GONE:
                raise
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)
        return super().write(data)  # type: ignore[arg-type]


def _unbroken(stream: TextIO, number: int) -> TextIO:
    """Return a stream that writes to the same file. number: of the standard stream"""
    if not isinstance(stream, io.TextIOWrapper) or stream.fileno() != number:
        return stream  # a test's, or a notebook's
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Unbroken(number, "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
