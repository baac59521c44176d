"""Standard streams that can be written in every terminal: closed ones are replaced, characters that a terminal lacks
are replaced by plain forms, and a reader that goes away does not end a run."""

import codecs
import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from types import MappingProxyType
from typing import TextIO

ERRORS = "allranks.plain"
"""The name of the error handler for characters that an encoding lacks (see `codecs.register_error`)."""

PLAIN = MappingProxyType(
    {
        **dict(zip("○◌●✓✗■⊘", "o:*+x#-", strict=True)),
        **dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True)),
        **dict(zip("·•…–—×→←│─├└┌┐┘┬┴┼━╸╺", "..~--x><|-||++++++---", strict=True)),
        **dict(zip("“”‘’", "\"\"''", strict=True)),
    }
)
"""ASCII forms of the characters that allranks prints, one column each so that tables stay aligned."""

_GONE = (errno.EPIPE, errno.EIO)
"""Errors of a stream without a reader: a pipe, or a terminal that was closed."""


def prepare() -> None:
    """Make the standard streams usable. Call this before anything opens a file.

    A closed stream is replaced by /dev/null: otherwise the next opened file would get its number, and printed text
    would be written into that file. A stream with another encoding than UTF-8, or any stream in the locale C, gets
    plain forms of missing characters. Messages without a reader are discarded.
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
    # Without any locale, as in a container, terminals have UTF-8 too.
    locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="ascii" if locale in ("C", "POSIX") else None, errors=ERRORS)
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


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Replace a character that an encoding lacks by its plain form, or escape it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if character in PLAIN:
        return PLAIN[character], error.start + 1
    if "\u2800" <= character <= "\u28ff":  # a braille pattern, with which spinners are drawn
        return "*", error.start + 1
    escaped, _ = codecs.backslashreplace_errors(
        UnicodeEncodeError(error.encoding, error.object, error.start, error.start + 1, error.reason)
    )
    return str(escaped), error.start + 1


codecs.register_error(ERRORS, _plain)
