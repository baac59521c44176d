"""Search the lines of a log for secrets, but lines that differ in their numbers alone only once.

Most lines of a training's log do: metrics, progress bars, JSON.
"""

from __future__ import annotations

import re

from allranks.secrets import Mask, extends_over_lines, may_have_secret, redact

_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")

_MOST = 4 * 1024 * 1024
"""Bytes of memory for the lines that are remembered."""
_OVERHEAD = 100
"""Bytes of memory that a line in a set takes besides its own."""

# A secret may continue in the next line if its line ends with "=" or ":", as in "password:", or if the next line begins
# with one. Characters beyond ASCII are left out, because some of them are whitespace.
_LINE_END = re.compile(rb"([\r\n])(?:(?<=[!-9;<>-~][\r\n])|(?<=[!-9;<>-~][ \r][\r\n]))(?=[ \t\r]*[!-9;<>-~\x1b])")


class LogLines:
    """Mask the secrets in the lines of one log. Lines without a secret are remembered, with 0 for every digit."""

    def __init__(self) -> None:
        self._without_secret: set[bytes] = set()
        self._size = 0

    def redact(self, data: bytes, mask: Mask) -> bytes:
        """Return the bytes with every text that has the shape of a secret masked, as `allranks.secrets.redact` does.

        data: the next bytes of the log. They end where a secret does not continue
        """
        lines = _LINE_END.split(data.translate(_ONE_DIGIT))
        new = set(lines) - self._without_secret
        suspects = {line for line in new if may_have_secret(_text(line))}
        self._remember(new - suspects)
        if not suspects:
            return data
        returns = b"\r" in data
        if any(extends_over_lines(_text(line), returns=returns) for line in suspects):
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
