"""What azure-ai-ml, azure-core and azure-identity raise, as one clear message without a secret."""

from __future__ import annotations

import contextlib
import json
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.secrets import redact

_OWN = str(Path(__file__).parents[1])
_LONGEST = 600
_REASON = re.compile(r"\[Errno -?\d+\] [^'\")>\]]+|CERTIFICATE_VERIFY_FAILED[^'\")]*|IncompleteRead\([^)]*\)")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")

SIGN_IN = (
    "az login, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET of a service principal\n"
    "(all ways: azure-identity's DefaultAzureCredential)"
)


class AzureError(Exception):
    """The service, or the way to it, failed: nothing that the user gave is to blame. The command ends with exit code 1.

    Its text is the whole message, without secrets.
    """

    def __init__(self, problem: Problem | str) -> None:
        problem = Problem("", problem) if isinstance(problem, str) else problem
        self.problem = Problem(*map(redact, (problem.where, problem.found, problem.expected, problem.fix)))
        super().__init__(str(self.problem))


@contextlib.contextmanager
def service_errors(doing: str, fix: str = "") -> Iterator[None]:
    """Turns what a call of the SDK raises into InputError (the user can correct it) or AzureError.

    doing: what the block does, for the message: "submitting the job"
    fix:   what to do where something was not found or was refused as wrong, where the service does not say it
    """
    try:
        yield
    except (InputError, AzureError):
        raise
    except Exception as error:
        said = as_told(error, doing, fix)
        if said is None:
            raise
        raise said from None


def as_told(error: Exception, doing: str, fix: str = "") -> InputError | AzureError | None:
    """The error as a user is told of it; None for one that is not the SDK's, which is a fault of ours."""
    from azure.core import exceptions as core

    if isinstance(error, core.ClientAuthenticationError) and error.status_code not in (401, 403):
        return _wrong(doing, _not_signed_in(error), "a sign-in", SIGN_IN)
    if isinstance(error, core.HttpResponseError) and (error.status_code or 200) >= 400:
        return _of_status(error, doing, fix)
    if isinstance(error, core.ServiceRequestError):
        found = f"Azure cannot be reached: {_innermost(error)}"
        return _failed(doing, found, "", "look at the network, a proxy, and the endpoint, then try again")
    if isinstance(error, (core.ServiceResponseError, core.HttpResponseError, core.DeserializationError)):
        found = f"the answer was torn or is none that the SDK can read: {_innermost(error)}"
        return _failed(doing, found, "", "try again: what is already done is not done twice")
    if _is_validation(error):
        return _wrong(doing, _complaint(error), "", fix)
    if isinstance(error, core.AzureError):
        return _failed(doing, _complaint(error), "", fix)
    if _is_ours(error):
        return None
    return _failed(doing, f"the SDK failed on what it was answered: {type(error).__name__}: {_short(str(error))}")


def _of_status(error: Any, doing: str, fix: str) -> InputError | AzureError:
    status, said = int(error.status_code), _service_message(error)
    if status == 401:
        return _wrong(doing, f"the sign-in is not accepted (401): {said}", "a sign-in for this tenant", SIGN_IN)
    if status == 403:
        expected = "a role that allows it, such as AzureML Data Scientist on the workspace"
        return _wrong(doing, f"it is not allowed (403): {said}", expected, "ask an owner of the workspace for the role")
    if status == 404:
        fix = fix or "look at the name, and at the subscription, resource group and workspace"
        return _wrong(doing, f"not found (404): {said}", "", fix)
    if status in (409, 412):
        fix = fix or "give another name or version, or wait until the other change is done"
        return _wrong(doing, f"it is there already, or being changed ({status}): {said}", "", fix)
    if status == 429:
        wait = _retry_after(error)
        found = f"too many requests (429), after several tries: {said}"
        return _failed(doing, found, "", f"try again in {wait} seconds" if wait else "try again later")
    if status >= 500 or status == 408:
        found = f"the service failed ({status}), after several tries: {said}"
        return _failed(doing, found, "", "try again; https://azure.status.microsoft tells of outages")
    return _wrong(doing, f"refused ({status}): {said}", "", fix)


def _wrong(where: str, found: str, expected: str = "", fix: str = "") -> InputError:
    return InputError(Problem(*map(redact, (where, found, expected, fix))))


def _failed(where: str, found: str, expected: str = "", fix: str = "") -> AzureError:
    return AzureError(Problem(where, found, expected, fix))


def _service_message(error: Any) -> str:
    """What the service itself says: the message of its error, else the body's beginning, else the status' name."""
    response = error.response
    with contextlib.suppress(Exception):  # a body may be anything, or not be there any more
        body = response.text()
        with contextlib.suppress(ValueError, AttributeError):
            found = json.loads(body)
            found = found.get("error", found)
            if message := found.get("message") or found.get("Message"):
                code = found.get("code", "")
                return _short(f"{code}: {message}" if code and code not in message else str(message))
        if body.strip() and not body.lstrip().startswith("<"):
            return _short(body)
    return _short(str(error.reason or error.message))


def _not_signed_in(error: Any) -> str:
    """DefaultAzureCredential says of each of ten ways why it is none; what Azure said of one of them is enough."""
    text = str(error.message)
    tried = re.findall(r"(AADSTS\d+: [^\n]*)", text)
    if tried:
        return _short(tried[0])
    if type(error).__name__ == "CredentialUnavailableError" or "Attempted credentials" in text:
        return "nobody is signed in to Azure: " + _short(_attempts(text))
    return _short(text)


def _attempts(text: str) -> str:
    names = re.findall(r"^\s*(\w+Credential): ", text, re.MULTILINE)
    return f"none of {len(names)} ways works ({', '.join(names)})" if names else text


def _retry_after(error: Any) -> str:
    value = str(getattr(error.response, "headers", {}).get("Retry-After", ""))
    return value if value.isdecimal() else ""


def _is_validation(error: Exception) -> bool:
    """Whether the SDK refused what it was given, before it asked anybody."""
    from azure.ai.ml import exceptions as ml
    from marshmallow.exceptions import ValidationError

    if isinstance(error, ml.MlException):
        # What it has formatted for a terminal has lost its kind: it does so with refused input only.
        return isinstance(error, (ml.ValidationException, ml.UserErrorException, ml.EmptyDirectoryError)) or (
            error.error_category != ml.ErrorCategory.SYSTEM_ERROR and not isinstance(error.inner_exception, OSError)
        )
    return isinstance(error, ValidationError)


def _complaint(error: Exception) -> str:
    text = _ESCAPES.sub("", str(getattr(error, "message", "") or error))
    with contextlib.suppress(ValueError):
        found, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
        if isinstance(found, dict) and found.get("errors"):
            return _short("; ".join(f"{one.get('path', '')}: {one.get('message', '')}" for one in found["errors"]))
    return _short(text)


def _innermost(error: BaseException) -> str:
    """The reason at the bottom of a chain of wrapped errors, in its own words."""
    text = _short(str(error))
    if found := _REASON.search(text):
        return found[0].strip()
    return text


def _short(text: str) -> str:
    text = " ".join(_ESCAPES.sub("", text).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} ..."


def _is_ours(error: Exception) -> bool:
    """Whether our code raised it, and not a library that it called."""
    frames = traceback.extract_tb(error.__traceback__)
    return not frames or frames[-1].filename.startswith(_OWN)
