"""The messages of the service: a request, an answer, and a refusal in Azure's format."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCOPE = re.compile(
    r"(/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices"
    r"/(?P<kind>workspaces|registries)/(?P<name>[^/]+))(?P<below>/.*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Request:
    """A request with its path decoded. headers: by name in lower case; target: path and query as they were sent"""

    method: str
    host: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    target: str = ""

    @property
    def json(self) -> Any:
        """The body as JSON. Raise Refusal if it is not."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise Refusal(400, "BadArgument", "The request's body is not JSON.") from None

    @property
    def scope(self) -> str:
        """The id of the workspace or registry that the path names, with which ids begin."""
        match = SCOPE.search(self.path)
        if match is None:
            return ""
        return f"azureml://registries/{match['name']}" if match["kind"].lower() == "registries" else match[1]

    @property
    def registry(self) -> str:
        """The name of the registry that the path names; "" for a workspace."""
        return self.scope.partition("azureml://registries/")[2]

    @property
    def below(self) -> str:
        """The path below the workspace or registry."""
        match = SCOPE.search(self.path)
        return (match["below"] or "") if match else self.path


@dataclass(frozen=True)
class Answer:
    """An answer. A file as body is read when it is sent."""

    status: int = 200
    body: bytes | Path = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any, status: int = 200, **headers: str) -> Answer:
        """Return an answer with JSON as its body."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(status, json.dumps(data).encode(), {"Content-Type": "application/json", **named})


class Refusal(Exception):
    """An answer with an error. inner: the codes inside of the code, the outermost first"""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        inner: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})
        self.inner = inner

    def answer(self, host: str) -> Answer:
        """Return the answer: XML for storage, ARM's JSON for everything else."""
        if ".blob." in host:
            body = f'<?xml version="1.0"?><Error><Code>{self.code}</Code><Message>{self.message}</Message></Error>'
            headers = {"Content-Type": "application/xml", "x-ms-error-code": self.code, **self.headers}
            return Answer(self.status, body.encode(), headers)
        error = {"code": self.code, "message": self.message, "details": [], "additionalInfo": self._more()}
        return Answer(
            self.status, json.dumps({"error": error}).encode(), {"Content-Type": "application/json", **self.headers}
        )

    def _more(self) -> list[dict[str, Any]]:
        inner: dict[str, Any] | None = None
        for code in reversed(self.inner):
            inner = {"code": code, "innerError": inner}
        more = {
            "ComponentName": "managementfrontend",
            "Correlation": {"operation": uuid.uuid4().hex, "request": uuid.uuid4().hex[:16]},
            **({"InnerError": inner} if inner else {}),
        }
        return [{"type": kind, "info": {"value": value}} for kind, value in more.items()]


def not_found(what: str) -> Refusal:
    """Return 404 with the service's message."""
    return Refusal(404, "UserError", f"{what} was not found.", inner=("NotFound",))


def user_error(message: str) -> Refusal:
    """Return 400 with the service's message."""
    return Refusal(400, "UserError", message, inner=("BadArgument", "ArgumentInvalid"))
