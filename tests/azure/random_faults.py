"""Faults at random requests of a command: refusals, torn and missing answers, slow and old ones."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from fake.faults import Fault
from fake.service import FakeAzure

from allranks_client.messages import Answer, Refusal, Request

STATUSES = (401, 403, 404, 409, 412, 429, 500, 502, 503, 504)
TORN, DROPPED, SLOW, OLD = "torn", "dropped", "slow", "old"
KINDS = (*map(str, STATUSES), TORN, DROPPED, SLOW, OLD)
"""What goes wrong. old: the answer is the one before the last change, as of a copy that lags behind."""

OF_THE_USER, OF_THE_SERVICE = {"401", "403", "404", "409", "412"}, {"429", "500", "502", "503", "504", TORN, DROPPED}
"""The kinds after which a command exits with 2, and those after which it exits with 1."""

SAID: Mapping[str, str] = {
    "401": r"\(401\)|failed to authenticate|sign",
    "403": r"\(403\)|authenticate|authorization",
    "404": r"\(404\)|not found|is not registered|no schedule|no compute|does not exist",
    "409": r"\(409\)|exists|Conflict",
    "412": r"\(412\)|condition|Precondition",
    "429": r"\(429\)|too many requests|Too many",
    "500": r"\(500\)|internal error|InternalError",
    "502": r"\(502\)|Bad gateway",
    "503": r"\(503\)|server is busy|ServerBusy",
    "504": r"\(504\)|timed out",
    TORN: r"incomplete|cannot be reached|invalid",
    DROPPED: r"incomplete|cannot be reached|invalid|closed|aborted",
    OLD: r".",
}
"""What the message of a command has to say of each kind."""


@dataclass(frozen=True)
class Planned:
    """at: the number of the request, from 0, that goes wrong; times: how many from there on"""

    at: int
    kind: str
    times: int


@dataclass(frozen=True)
class _Old(Fault):
    """A refusal that is none: what the same request was answered before, or that nothing is there yet."""

    before: Answer | None = None

    @property
    def refuses(self) -> bool:
        return True

    def answer(self, request: Request) -> Answer:
        return self.before or Refusal(404, "NotFound", "The resource was not found.").answer(request.host)


@dataclass
class RandomFaults:
    """Stands in the place of a service's `Faults`.

    happened: the kinds that a request met, in order
    requests: how many there were until `remove`
    """

    azure: FakeAzure
    planned: list[Planned]
    happened: list[str] = field(default_factory=list)
    requests: int = 0
    _removed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _before: dict[tuple[str, str], Answer] = field(default_factory=dict)

    def install(self) -> None:
        """From now on; `remove` ends it."""
        answer = self.azure.answer

        def remembered(request: Request) -> Answer:
            given = answer(request)
            if request.method == "GET":
                self._before[request.host, request.target] = given
            return given

        self.azure.faults = self  # type: ignore[assignment]
        self.azure.answer = remembered  # type: ignore[method-assign]

    def remove(self) -> None:
        self._removed, self.planned = True, []

    def take(self, request: Request) -> Fault | None:
        with self._lock:
            number, self.requests = self.requests, self.requests + (not self._removed)
            plan = next((each for each in self.planned if each.at <= number < each.at + each.times), None)
            fault = plan and self._fault(plan.kind, request)
            if plan and fault:
                self.happened.append(plan.kind)
            return fault

    def _fault(self, kind: str, request: Request) -> Fault | None:
        pattern = re.compile("")
        if kind == TORN:
            return Fault(pattern, None, 200, torn=True)
        if kind == DROPPED:
            return Fault(pattern, None, 0)
        if kind == SLOW:
            return Fault(pattern, None, 200, delay=0.02)
        if kind == OLD:
            reads = request.method == "GET" and ".blob." not in request.host
            return _Old(pattern, None, 0, before=self._before.get((request.host, request.target))) if reads else None
        return Fault(pattern, None, int(kind), {"Retry-After": "0"} if kind == "429" else {})
