"""Environment variables as numbers and texts, and what is said where they are wrong. An empty one is an unset one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import overload

from allranks.errors import InputError, Problem


def text(environ: Mapping[str, str], name: str) -> str | None:
    """Return a variable's value, None where it is unset or blank."""
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
    """Return a variable's value as a whole number from `minimum` to under `below`; `default` where it is unset.

    Raise InputError if it is unset and has no default, is not a whole number, or is outside its range.
    """
    value = text(environ, name)
    expected = f"a whole number of at least {minimum}" + (f", below {below}" if below is not None else "")
    if value is None:
        if isinstance(default, str):
            raise missing(name, expected)
        return default
    # Not int() alone: that also takes "1_000", and digits of other scripts.
    digits = value.removeprefix("-")
    number = int(value) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None
    if number is None or number < minimum or (below is not None and number >= below):
        raise wrong(name, f"found {value!r}", expected)
    return number


def missing(name: str, expected: str, fix: str = "") -> InputError:
    """Return what is raised where a variable is needed that nobody set."""
    return wrong(name, "is not set", expected, fix or f"start the process with a launcher that sets {name}, or set it")


def wrong(name: str, found: str, expected: str, fix: str = "") -> InputError:
    """Return what is raised where a variable, or two together, cannot be right."""
    return InputError(
        Problem(
            where=f"environment variable {name}",
            found=found,
            expected=expected,
            fix=fix or f"unset {name} if it is left from another launcher, or set it right",
        )
    )
