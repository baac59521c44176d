"""Mask secrets in the logs of ranks: in the files of completed steps, and in printed logs."""

from __future__ import annotations

import errno
import io
import mmap
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Literal

from allranks.secrets import Mask, extends_over_lines, forms, may_have_secret, redact, replace_known, same_length, short

LONGEST_LINE = 64 * 1024
"""Bytes of a line that are held until it ends. A longer line is cut between two words."""

MOST_NEW = 4 * 1024 * 1024
"""Maximum bytes of non-recurring text to search in the logs of an attempt."""

_MOST_HELD = 4 * LONGEST_LINE
_KEY_BEGINS = re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY")
_KEY_ENDS = b"-----END "
_BETWEEN_WORDS = (b" ", b"\t", b"\r", b'"', b"'", b"<", b">")
_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_MOST = 4 * 1024 * 1024
"""Maximum bytes of memory for the remembered lines."""
_OVERHEAD = 100
"""Additional bytes of memory per line in a set."""
_LINE_END = re.compile(rb"([\r\n])(?:(?<=[!-9;<>-~][\r\n])|(?<=[!-9;<>-~][ \r][\r\n]))(?=[ \t\r]*[!-9;<>-~\x1b])")


def redacted(
    pieces: Iterable[bytes],
    known: Iterable[str] = (),
    *,
    mask: Mask = short,
    complete: bool = True,
    lines: LogLines | None = None,
) -> Iterator[bytes]:
    """Yield the bytes of a log with ``***`` in place of every secret, including one that continues in the next piece.

    known:    values that are secret regardless of their shape
    mask:     the replacement for a secret
    complete: whether nothing follows the pieces. Otherwise an unfinished line at the end is omitted, because a secret
              in it may be incomplete
    lines:    the lines of other logs that have been searched
    """
    known = tuple(known)
    lines = lines or LogLines()
    held = b""
    for piece in pieces:
        held += piece
        end = _end(held)
        if end:
            yield _masked(held[:end], known, mask, lines)
            held = held[end:]
    if held and complete:
        yield _masked(held, known, mask, lines)


def open_log(path: str, mode: Literal["rb", "rb+"] = "rb") -> io.FileIO:
    """Open a log. Raise OSError if it is not a regular file: a rank may have replaced it by a device, which has no end,
    or by a link to any file of this machine."""
    if any(map(os.path.islink, (path, os.path.dirname(path)))):
        raise OSError(errno.ELOOP, "it is a link, which is not followed", path)
    # Without O_NONBLOCK, opening a FIFO would block.
    flags = (os.O_RDONLY if mode == "rb" else os.O_RDWR) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = io.FileIO(os.open(path, flags), mode)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is a FIFO or a device, not a file", path)
    return file


def mask_in_file(path: str, known: Iterable[str], most: int, lines: LogLines | None = None) -> int | None:
    """Overwrite the secrets in a log with asterisks: the known ones, and texts with the shape of a secret.

    most:  maximum size of a log, in bytes, that is searched for shapes. This takes a second for each 100 MB of lines
           that differ only in their numbers
    lines: the lines of other logs that have been searched. Text that never recurs takes a second for each 1 to 3 MB,
           and the search ends after `MOST_NEW` of it

    Each secret keeps its length, so that the offsets of a reader that follows the log stay right. A missing or empty
    file is not changed. Return how many bytes were searched for shapes, or None if not all of the log was.

    Raise OSError if the file cannot be changed.
    """
    values = [form.encode("utf-8", "surrogateescape") for form in forms(frozenset(known))]
    try:
        with open_log(path, "rb+") as file, mmap.mmap(file.fileno(), 0) as content:
            for value in values:
                place = content.find(value)
                while place >= 0:
                    content[place : place + len(value)] = b"*" * len(value)
                    place = content.find(value, place + len(value))
            if len(content) > most:
                return None
            place = 0
            pieces = (content[start : start + LONGEST_LINE] for start in range(0, len(content), LONGEST_LINE))
            lines = lines or LogLines()
            for masked in redacted(pieces, mask=same_length, lines=lines):
                end = place + len(masked)
                if content[place:end] != masked:
                    content[place:end] = masked
                place = end
                if lines.searched > MOST_NEW and place < len(content):
                    return None
            return place
    except (FileNotFoundError, ValueError):  # mmap raises ValueError for an empty file
        return 0


def _end(data: bytes) -> int:
    """Return the offset at which the data can be cut without cutting a secret; 0 if more must be read."""
    end = data.rfind(b"\n") + 1
    if not end and len(data) > LONGEST_LINE:
        # Data without a separator between words is not text, so it has no secret.
        end = max(data.rfind(separator) for separator in _BETWEEN_WORDS) + 1 or len(data)
    if len(data) < _MOST_HELD:
        keys = [match.start() for match in _KEY_BEGINS.finditer(data, 0, end)]
        if keys and data.find(_KEY_ENDS, keys[-1], end) < 0:
            return keys[-1]
    return end


def _masked(data: bytes, known: tuple[str, ...], mask: Mask, lines: LogLines) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    masked = replace_known(text, known, mask)
    return lines.redact(data if masked == text else masked.encode("utf-8", "surrogateescape"), mask)


# A secret may continue in the next line if its line ends with "=" or ":", as in "password:", or if the next line begins
# with one. Non-ASCII characters are excluded, because some of them are whitespace.


class LogLines:
    """Mask the secrets in the lines of logs. Lines without a secret are remembered, with 0 for every digit, because
    most lines of a training's log differ only in their numbers."""

    def __init__(self) -> None:
        self.searched = 0
        """Bytes of the lines that were new."""
        self._without_secret: set[bytes] = set()
        self._size = 0

    def redact(self, data: bytes, mask: Mask) -> bytes:
        """Return the bytes with every text that has the shape of a secret masked, as by `allranks.secrets.redact`.

        data: the next bytes of the log, which must not end within a secret
        """
        lines = _LINE_END.split(data.translate(_ONE_DIGIT))
        new = set(lines) - self._without_secret
        self.searched += sum(map(len, new))
        suspects = {line for line in new if may_have_secret(_text(line))}
        self._remember(new - suspects)
        if not suspects:
            return data
        if any(extends_over_lines(_text(line)) for line in suspects):
            return _redacted(data, mask)
        parts = zip(lines, _LINE_END.split(data), strict=True)
        return b"".join(_redacted(part, mask) if line in suspects else part for line, part in parts)

    def _remember(self, lines: set[bytes]) -> None:
        size = sum(map(len, lines)) + _OVERHEAD * len(lines)
        if self._size + size > _MOST:
            self._without_secret.clear()
            self._size = 0
        if size <= _MOST:
            self._without_secret.update(lines)
            self._size += size


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _redacted(data: bytes, mask: Mask) -> bytes:
    return redact(_text(data), mask=mask).encode("utf-8", "surrogateescape")
