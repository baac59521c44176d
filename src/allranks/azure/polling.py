"""When the state of a run is requested again, and which failures end the requests."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.azure.errors import AzureError, NotFoundError, RejectedSignInError, SignInError
from allranks.errors import InputError

POLL = 2.0
"""Seconds between two requests while the run changes."""

POLL_MAX = 30.0
"""Seconds between two requests while nothing changes, or while they fail."""

PATIENCE = 5
"""Number of failed requests in a row after which watching ends."""

UNKNOWN_PATIENCE = 12
"""The same before run history knows the run: it may return 404 for a minute after the job is accepted."""

SIGN_IN_PATIENCE = 120
"""The same while the sign-in has expired: an hour, in which somebody may sign in again in another terminal."""

_GROWTH = 1.5


class Polling:
    """The intervals and the patience of one watch.

    delay: seconds until the next request
    """

    def __init__(self) -> None:
        self.delay = POLL
        self._known = False
        self._failures = 0
        self._noted = ""

    def succeeded(self, *, changed: bool) -> None:
        """Continue after an answer. changed: whether the run has changed since the last one"""
        self._known, self._failures, self._noted = True, 0, ""
        self.delay = POLL if changed else self._longer()

    def failed(self, error: AzureError | InputError) -> Iterator[str]:
        """Yield a note for the user if there is anything new to say. Raise the error if watching ends with it."""
        self._failures += 1
        if self._failures > self._patience(error):
            raise error
        self.delay = self._longer()
        problem = error.problem if isinstance(error, AzureError) else error.problems[0]
        fix = "; sign in again, and watching continues" if _is_sign_in(error) else ""
        if (note := f"{problem.found}{fix}") != self._noted:
            self._noted = note
            yield note

    def _patience(self, error: AzureError | InputError) -> int:
        if isinstance(error, AzureError):
            return PATIENCE
        if _is_sign_in(error):
            return SIGN_IN_PATIENCE
        return UNKNOWN_PATIENCE if isinstance(error, NotFoundError) and not self._known else 0

    def _longer(self) -> float:
        return min(self.delay * _GROWTH, POLL_MAX)


def _is_sign_in(error: AzureError | InputError) -> bool:
    return isinstance(error, (SignInError, RejectedSignInError))
