"""Errors of inputs, and parts of their messages."""

from allranks.errors import InputError, Problem


def bad_input(where: str, found: str, expected: str = "", fix: str = "") -> InputError:
    """Return the error of one problem; the arguments are those of Problem."""
    return InputError(Problem(where, found, expected, fix))


def first_line(error: Exception) -> str:
    """Return the first line of an exception's message, shortened; its type if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
