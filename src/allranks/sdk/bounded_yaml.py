"""Read YAML in bounded time and memory, whatever a file contains.

YAML allows a short file that expands to billions of values (aliases of aliases), a value that contains itself, and any
depth. Each would exhaust memory or Python's stack, here or in the SDK. Therefore, a file is checked before its values
are built, while it is parsed into events, which takes linear time.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import yaml

from allranks.errors import InputError, Problem
from allranks.sdk.paths import shown

MOST_BYTES = 16 << 20
"""Limit for a file. The YAML of a pipeline with 1,000 steps has 0.3 MB."""

MOST_LEVELS = 100
"""Limit for nested lists and mappings. Azure ML's deepest schema has some ten levels."""
_TOO_DEEP = "lists and mappings inside of each other", f"at most {MOST_LEVELS} levels"

MOST_VALUES = 500_000
"""Limit for keys and values. A pipeline with 10,000 steps has 200,000."""

MOST_REPEATED = 50_000
"""Limit for keys and values that aliases repeat."""

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UnboundedError(yaml.MarkedYAMLError):
    """A file exceeds a limit. problem: what was found; note: what is allowed"""


def read(path: Path) -> str:
    """Return a file's text.

    Raise OSError if it cannot be read, is not a file, or is too large, and UnicodeDecodeError if it is not UTF-8.
    """
    # Without O_NONBLOCK, opening a FIFO would block.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a regular file", str(path))
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(0, f"it is larger than {MOST_BYTES >> 20} MB", str(path))
    return content.decode("utf-8-sig")


def load(source: str | bytes | IO[Any]) -> Any:
    """Return the values of a text or an open file. Raise YAMLError or ValueError if it is not YAML, UnboundedError if
    it exceeds a limit."""
    text = source if isinstance(source, (str, bytes)) else source.read()
    check(text)
    return yaml.load(text, Loader=LOADER)


def load_file(path: Path) -> Any:
    """Return the values of a file. Raise OSError, YAMLError or ValueError."""
    return load(read(path))


def check(text: str | bytes) -> None:
    """Raise UnboundedError if a text exceeds a limit, YAMLError if it is not YAML."""
    try:
        _check(yaml.parse(text, Loader=LOADER))
    except yaml.MarkedYAMLError as error:
        # The parser in C reads ahead of its events. That of PyYAML 6.0.4 has a limit of its own, 1,000 levels.
        if "nesting depth" in str(error.problem):
            raise _error(error.problem_mark, *_TOO_DEEP) from None
        raise


def _check(events: Iterable[yaml.Event]) -> None:
    """Count the values that events stand for, with those that aliases repeat."""
    count = repeated = 0
    sizes: dict[str, int] = {}
    # The anchor of each list and mapping that has not ended, and how many values there were before it.
    begun: list[tuple[str | None, int]] = []
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            anchor, mark = event.anchor or "", event.start_mark
            if any(anchor == other for other, _ in begun):
                raise _error(mark, f"*{anchor} is inside of &{anchor}: it contains itself", "values that end")
            size = sizes.get(anchor, 1)  # the loader reports an unknown one
            count, repeated = count + size, repeated + size
            if repeated > MOST_REPEATED:
                raise _error(mark, f"aliases such as *{anchor} repeat values", f"at most {MOST_REPEATED:,} of them")
        elif isinstance(event, yaml.CollectionStartEvent):
            begun.append((event.anchor, count))
            count += 1
            if len(begun) > MOST_LEVELS:
                raise _error(event.start_mark, *_TOO_DEEP)
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            sizes[event.anchor or ""] = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor_of, before = begun.pop()
            sizes[anchor_of or ""] = count - before
        if count > MOST_VALUES:
            raise _error(event.start_mark, "more keys and values than any pipeline has", f"at most {MOST_VALUES:,}")


def problem(path: Path, error: Exception) -> Problem:
    """Return the problem for an exception of `read` or `load`, with the line if it is known."""
    file = shown(path)
    if isinstance(error, UnicodeDecodeError):
        fix = "save it as UTF-8, or name another file"
        return Problem(
            file, f"it is not UTF-8: byte {error.start + 1} is {error.object[error.start]:#04x}", "YAML", fix
        )
    if isinstance(error, OSError):
        found = f"cannot be read: {error.strerror or error}"
        return Problem(file, found, "a YAML file that can be read", "check its name and its permissions")
    mark = (error.problem_mark or error.context_mark) if isinstance(error, yaml.MarkedYAMLError) else None
    place = file if mark is None else f"{file}:{mark.line + 1}:{mark.column + 1}"
    if mark is not None and mark.line >= (lines := len(path.read_bytes().splitlines())):
        place = f"{file}:{max(lines, 1)}"  # the end of the file
    if isinstance(error, UnboundedError):
        return Problem(place, str(error.problem), str(error.note), "write the values out, or reduce their number")
    if isinstance(error, yaml.MarkedYAMLError):
        message = ", ".join(part for part in (error.context, error.problem) if part)
    else:
        message = " ".join(str(error).split())
    fix = "correct it there, or in the lines before"
    return Problem(place, f"it is not YAML: {message}", "YAML", fix, code="invalid-yaml")


def read_values(path: Path) -> Any:
    """Return the values of a file. Raise InputError, with the line if it is known, if that fails."""
    try:
        return load_file(path)
    except (OSError, yaml.YAMLError, ValueError) as error:
        raise InputError(problem(path, error)) from None


def _error(mark: Any, found: str, expected: str) -> UnboundedError:
    return UnboundedError(problem=found, problem_mark=mark, note=expected)
