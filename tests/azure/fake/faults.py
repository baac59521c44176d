"""Answers that go wrong: errors, slow ones, torn ones."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from allranks_client.messages import Answer, Refusal, Request

_WORDS = {
    400: ("UserError", "The request is not valid."),
    401: ("InvalidAuthenticationToken", "The access token is invalid."),
    403: (
        "AuthorizationFailed",
        "The client 'somebody' does not have authorization to perform this action, or the scope is invalid.",
    ),
    404: ("ResourceNotFound", "The resource was not found."),
    409: ("Conflict", "The resource exists already."),
    429: ("TooManyRequests", "Too many requests. Please retry later."),
    500: ("InternalServerError", "An internal error occurred."),
    502: ("BadGateway", "Bad gateway."),
    503: ("ServerBusy", "The server is busy."),
    504: ("GatewayTimeout", "The request timed out."),
}
_STORAGE_CODES = {403: "AuthenticationFailed", 500: "InternalError", 404: "BlobNotFound"}


@dataclass(frozen=True)
class Fault:
    """What happens to a request.

    status: 400 or more: it is refused with this status, and nothing is done. Less: it is done, late or torn. 0: nothing
            is done, and the connection ends without an answer
    body:   what is answered instead, with any status; nothing is done
    torn:   the request is done, but the connection ends in the middle of the answer
    delay:  seconds before anything happens
    """

    pattern: re.Pattern[str]
    method: str | None
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    torn: bool = False
    delay: float = 0.0

    @property
    def refuses(self) -> bool:
        return not self.torn and (self.status >= 400 or self.status == 0 or self.body is not None)

    def answer(self, request: Request) -> Answer:
        """The refusal."""
        if self.status == 0:
            return Answer(0)
        if self.body is not None:
            return Answer(self.status, self.body, {"Content-Type": "application/json", **self.headers})
        code, message = _WORDS.get(self.status, ("Error", "Something went wrong."))
        if ".blob." in request.host:
            code = _STORAGE_CODES.get(self.status, code)
        return Refusal(self.status, code, message, self.headers).answer(request.host)


class Faults:
    """Those that are still to come, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Fault, int]] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault, times: int) -> None:
        with self._lock:
            self._waiting.append((fault, times))

    def take(self, request: Request) -> Fault | None:
        """The first that is meant for this request, which has then happened once more."""
        with self._lock:
            for place, (fault, times) in enumerate(self._waiting):
                if fault.method in (None, request.method) and fault.pattern.search(f"{request.host}{request.path}"):
                    self._waiting[place : place + 1] = [(fault, times - 1)] if times > 1 else []
                    return fault
        return None
