"""Requests as calls of functions: typed parameters come in, plain data or one message goes out."""

import errno
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from allranks.errors import InputError, Problem
from allranks.secrets import redact
from allranks_studio.server.folders import Folder

if TYPE_CHECKING:
    from allranks_studio.server.app import Studio

_STATUS = {"unknown-run": 404, "damaged-workspace": 500, "workspace-access": 403, "disk-full": 507}
"""The status of HTTP for the codes of problems; 400 for others."""

_DISK = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), 507),
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), 403),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), 404),
    **dict.fromkeys((errno.EINVAL, errno.ELOOP, errno.EISDIR, errno.ENAMETOOLONG), 400),
}
_FIXES = {507: "free some space", 403: "the folder can only be read: change its permissions"}


class Answer(Exception):
    """An answer that is not 200. value: plain data"""

    def __init__(self, status: int, value: Any) -> None:
        self.status = status
        self.value = value


@dataclass(frozen=True)
class Call:
    """The parameters of a request: of its address, or of its body."""

    studio: "Studio"
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
        value = self.values.get(name, default)
        try:
            if isinstance(value, bool) or (isinstance(value, str) and len(value) > 20):
                raise ValueError
            return min(max(int(value), low), high)
        except (ValueError, TypeError):
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

    async def answer(request: Request) -> Response:
        try:
            values = {**request.query_params, **request.path_params}
            if changes:
                values = json.loads(await request.body() or b"null")
                if not isinstance(values, dict):
                    raise InputError(Problem("the body", "it is not an object", "a JSON object"))
            value = await run_in_threadpool(_answer, function, Call(request.app.state.studio, values))
            return value if isinstance(value, Response) else data(value)
        except Answer as found:
            return data(found.value, found.status)
        except json.JSONDecodeError as error:
            return data({"message": f"the body is not JSON: {error.msg}", "fix": ""}, 400)
        except RecursionError:
            return data({"message": "the body is nested too deeply", "fix": ""}, 400)
        except InputError as error:
            return data(*_of_input(error))
        except OSError as error:
            status = _DISK.get(error.errno or 0, 500)
            where = f"{error.filename}: " if error.filename else ""
            return data({"message": f"{where}{error.strerror or error}", "fix": _FIXES.get(status, "")}, status)

    return Route(path, answer, methods=["POST" if changes else "GET"])


def _answer(function: str, call: Call) -> Any:
    module, _, name = function.rpartition(".")
    return getattr(import_module(f"{__package__}.{module}"), name)(call)


def data(value: Any, status: int = 200) -> Response:
    """Return plain data as JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A path that is not UTF-8 has surrogates.
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def finite(value: float | None) -> float | None:
    """Return a number that JSON has, or None."""
    return value if value is not None and math.isfinite(value) else None


def _of_input(error: InputError) -> tuple[dict[str, str], int]:
    problems = [Problem(each.where, each.found, each.expected) for each in error.problems]
    fix = "; ".join(dict.fromkeys(each.fix for each in error.problems if each.fix))
    code = next((each.code for each in error.problems if each.code), "")
    return {"message": redact("\n".join(map(str, problems))), "fix": redact(fix)}, _STATUS.get(code, 400)
