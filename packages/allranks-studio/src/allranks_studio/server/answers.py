"""Requests as calls of functions: typed parameters come in, plain data or one message goes out."""

import errno
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from allranks.errors import InputError, Problem
from allranks.secrets import redact
from allranks_studio.server.folders import Folder
from allranks_studio.server.studio import Studio

LARGEST_BODY = 4 << 20
"""Maximum bytes of the body of a request."""

_LOG = logging.getLogger(__name__)
_STATUS = {"unknown-run": 404, "damaged-workspace": 500, "workspace-access": 403, "disk-full": 507}
"""The status of HTTP for the codes of problems; 400 for others."""

_DISK = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), 507),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), 403),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), 404),
    **dict.fromkeys((errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.ENAMETOOLONG), 400),
}
_FIXES = {507: "free some space", 403: "the folder can only be read: change its permissions"}


class Refusal(Exception):
    """An answer that is not 200. status: of HTTP; values: its other values"""

    def __init__(self, status: int, message: str, fix: str = "", **values: Any) -> None:
        self.status, self.value = status, {"message": message, "fix": fix, **values}


@dataclass(frozen=True)
class Call:
    """The parameters of a request: of its address, or of its body."""

    studio: Studio
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Folder:
        """Return the folder. Raise InputError if the studio does not show it."""
        name, folders = self.text("folder"), self.studio.folders
        if name not in folders:
            raise InputError(Problem(f"folder {name}", "this studio does not show it", f"one of {', '.join(folders)}"))
        return folders[name]

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Raise InputError if it is missing and has no default, or if it is not a text."""
        value = self.values.get(name, default)
        if not isinstance(value, str) or "\0" in value or value.encode("utf-8", "replace").decode() != value:
            raise self._wrong(name, "a text")
        return value

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number within limits. Raise InputError if it is not one."""
        text = str(self.values.get(name, default))
        try:
            return min(max(int(text if len(text) <= 20 else ""), low), high)
        except ValueError:
            raise self._wrong(name, "a whole number") from None

    def texts(self, name: str, most: int) -> list[str]:
        """Return texts that commas separate. Raise InputError if there are none, or more than `most`."""
        found = list(filter(None, self.text(name).split(",")))
        if not 0 < len(found) <= most:
            raise self._wrong(name, f"1 to {most} names, separated by commas")
        return found

    def table(self, name: str) -> dict[str, str]:
        """Return texts by name. Raise InputError if it is something else."""
        value = self.values.get(name, {})
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            raise self._wrong(name, "an object of texts")
        return value

    def _wrong(self, name: str, expected: str) -> InputError:
        return InputError(Problem(f"parameter {name}", ascii(self.values.get(name))[:80], expected))


def route(path: str, function: str, *, changes: bool = False) -> Route:
    """Return a route that calls a function of this package in a thread.

    function: MODULE.NAME; the module is imported for its first request, since all of them take 0.5 s
    changes:  whether the route answers POST instead of GET
    """

    def call(studio: Studio, values: Mapping[str, Any]) -> Response:
        module, _, name = function.rpartition(".")
        value = getattr(import_module(f"{__package__}.{module}"), name)(Call(studio, values))
        return value if isinstance(value, Response) else data(value)

    async def answer(request: Request) -> Response:
        values = await _body(request) if changes else request.query_params
        return await run_in_threadpool(call, request.app.state.studio, {**values, **request.path_params})

    return Route(path, answer, methods=["POST" if changes else "GET"])


async def _body(request: Request) -> dict[str, Any]:
    """Return the object that is the body of a request. Raise Refusal if it is too large or something else."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "the body is not of type application/json")
    body, size = bytearray(), 0
    async for part in request.stream():
        size += len(part)
        body += part if size <= LARGEST_BODY else b""  # the rest is read, since a browser first sends all of it
    if size > LARGEST_BODY:
        raise Refusal(413, f"the request has more than {LARGEST_BODY >> 20} MB")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise Refusal(400, "the body is not an object")
    return values


def data(value: Any, status: int = 200) -> Response:
    """Return plain data as JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A path that is not UTF-8 has surrogates.
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def answer_of(error: Exception) -> Response:
    """Return the answer of a request that has raised an error."""
    match error:
        case Refusal():
            return data(error.value, error.status)
        case InputError(problems=problems):
            message = "\n".join(str(Problem(each.where, each.found, each.expected)) for each in problems)
            fix = "; ".join(dict.fromkeys(each.fix for each in problems if each.fix))
            status = next((_STATUS[each.code] for each in problems if each.code in _STATUS), 400)
        case OSError():
            status = _DISK.get(error.errno or 0, 500)
            message = f"{error.filename}: " * bool(error.filename) + (error.strerror or str(error))
            fix = _FIXES.get(status, "")
        case HTTPException():
            status, message, fix = error.status_code, error.detail, ""
        case _:
            _LOG.error("the studio could not answer", exc_info=error)
            status, message = 500, f"an error of the studio: {type(error).__name__}"
            fix = "report it; the terminal shows the details"
    return data({"message": redact(message), "fix": redact(fix)}, status)
