"""Requests as calls of functions: their parameters are those of the request, their result is the answer."""

import errno
import json
import logging
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from allranks.errors import InputError, Problem
from allranks.history import stored
from allranks.history.records import RunRecord
from allranks.secrets import redact
from allranks_studio.server.folders import Folder
from allranks_studio.server.studio import Studio

LARGEST_BODY = 4 << 20
"""Maximum bytes of the body of a request."""
MOST_NAMES = 200
"""Maximum names in a parameter, such as runs that are compared."""

_LOG = logging.getLogger(__name__)
_STATUS = {"unknown-run": 404, "damaged-workspace": 500, "workspace-access": 403, "disk-full": 507}
"""The status of HTTP for the codes of problems; 400 for others."""

_FULL = 507, "free some space"
_READ_ONLY = 403, "the folder can only be read: change its permissions"
_DISK = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _READ_ONLY),
}
"""The status of HTTP, and the fix, for errors of files; 400 for others."""


class Refusal(HTTPException):
    """An answer that is not 200. status: of HTTP; values: its other values"""

    def __init__(self, status: int, message: str, fix: str = "", **values: Any) -> None:
        super().__init__(status, message)
        self.values = {"fix": fix, **values}


def route(path: str, function: str, *, changes: bool = False) -> Route:
    """Return a route that calls a function of this package in a thread.

    function: MODULE.NAME; the module is imported for its first request, since all of them take 0.5 s
    changes:  whether the route answers POST instead of GET
    """

    def call(studio: Studio, values: Mapping[str, Any]) -> Response:
        module, _, name = function.rpartition(".")
        called = getattr(import_module(f"{__package__}.{module}"), name)
        parameters = signature(called).parameters.items()
        answer = called(**{name: _argument(each, studio, values) for name, each in parameters})
        return answer if isinstance(answer, Response) else data(answer)

    async def answer(request: Request) -> Response:
        try:
            values = await _body(request) if changes else request.query_params
            return await run_in_threadpool(call, request.app.state.studio, {**values, **request.path_params})
        except Exception as error:
            return answer_of(error)

    return Route(path, answer, methods=["POST" if changes else "GET"])


def _argument(parameter: Parameter, studio: Studio, values: Mapping[str, Any]) -> Any:
    """Return the argument for a parameter: the value with its name, or the `Folder` or `RunRecord` that the values
    `folder` and `run` name. Raise InputError if there is none, or one of another type."""
    kind = parameter.annotation
    if kind is Studio:
        return studio
    if kind is Folder:
        return studio.folder(_value(values, "folder", str))
    if kind is RunRecord:
        folder = studio.folder(_value(values, "folder", str))
        return stored.run(folder.workspace, _value(values, "run", str), curves=False)
    return _value(values, parameter.name, kind, parameter.default)


def _value(values: Mapping[str, Any], name: str, kind: Any, default: Any = Parameter.empty) -> Any:
    convert, expected = _CONVERSIONS[kind]
    try:
        return convert(values.get(name, default))
    except ValueError:
        raise InputError(Problem(f"parameter {name}", ascii(values.get(name))[:80], expected)) from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value or value.encode("utf-8", "replace").decode() != value:
        raise ValueError
    return value


def _names(value: Any) -> list[str]:
    found = [name for name in _text(value).split(",") if name]
    if not 0 < len(found) <= MOST_NAMES:
        raise ValueError
    return found


def _texts(value: Any) -> dict[str, str]:
    value = {} if value is Parameter.empty else value
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError
    return value


_CONVERSIONS: dict[Any, tuple[Callable[[Any], Any], str]] = {
    str: (_text, "a text"),
    int: (lambda value: int(str(value)), "a whole number"),
    list[str]: (_names, f"1 to {MOST_NAMES} names, separated by commas"),
    dict[str, str]: (_texts, "an object of texts"),
    Any: (lambda value: value, ""),
}
"""How a value becomes that of a type, and what is expected. It raises ValueError."""


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


def finite(value: float | None) -> float | None:
    """Return a number that JSON has, or None."""
    return value if value is not None and math.isfinite(value) else None


def answer_of(error: Exception) -> Response:
    """Return the answer of a request that has raised an error."""
    match error:
        case HTTPException(status_code=status, detail=message):
            return data({"message": message, "fix": "", **getattr(error, "values", {})}, status)
        case InputError(problems=problems):
            message = "\n".join(str(Problem(each.where, each.found, each.expected)) for each in problems)
            fix = "; ".join(dict.fromkeys(each.fix for each in problems if each.fix))
            status = next((_STATUS[each.code] for each in problems if each.code in _STATUS), 400)
        case OSError():
            status, fix = _DISK.get(error.errno or 0, (400, ""))
            message = f"{error.filename}: " * bool(error.filename) + (error.strerror or str(error))
        case _:
            _LOG.error("the studio could not answer", exc_info=error)
            status, message = 500, f"an error of the studio: {type(error).__name__}"
            fix = "report it; the terminal shows the details"
    return data({"message": redact(message), "fix": redact(fix)}, status)
