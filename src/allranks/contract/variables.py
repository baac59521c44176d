"""Read environment variables as numbers and texts, with errors for invalid ones. An empty variable counts as not
set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from allranks.errors import InputError, Problem


def text(environ: Mapping[str, str], name: str) -> str | None:
    """Return a variable's value; None if it is not set or blank."""
    return environ.get(name, "").strip() or None


@overload
def integer(environ: Mapping[str, str], name: str, *, minimum: int = 0, below: int | None = None) -> int: ...
@overload
def integer(
    environ: Mapping[str, str], name: str, *, minimum: int = 0, below: int | None = None, default: int
) -> int: ...
@overload
def integer(
    environ: Mapping[str, str], name: str, *, minimum: int = 0, below: int | None = None, default: None
) -> int | None: ...
def integer(
    environ: Mapping[str, str],
    name: str,
    *,
    minimum: int = 0,
    below: int | None = None,
    default: int | str | None = "required",
) -> int | None:
    """Return a variable's value as an integer, at least `minimum` and less than `below`; `default` if it is not set.

    Raise InputError if it is not set and has no default, is not an integer, or is out of range.
    """
    value = text(environ, name)
    expected = f"a whole number of at least {minimum}" + (f", below {below}" if below is not None else "")
    if value is None:
        if isinstance(default, str):
            raise missing(name, expected)
        return default
    # int() alone would also accept "1_000" and digits of other scripts.
    digits = value.removeprefix("-")
    number = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    if number is None or number < minimum or (below is not None and number >= below):
        raise wrong(name, repr(value), expected)
    return number


def missing(name: str, expected: str, fix: str = "") -> InputError:
    """Return the InputError for a required variable that is not set."""
    return wrong(name, "is not set", expected, fix or f"start the process with a launcher that sets {name}, or set it")


def wrong(name: str, found: str, expected: str, fix: str = "") -> InputError:
    """Return the InputError for an invalid variable, or for two variables that contradict each other."""
    return InputError(
        Problem(
            where=f"environment variable {name}",
            found=found,
            expected=expected,
            fix=fix or f"unset {name} if it is left from another launcher, or set it right",
        )
    )
