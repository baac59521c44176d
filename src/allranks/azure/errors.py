"""Convert errors of azure-ai-ml, azure-core and azure-identity to a clear message without secrets."""

import contextlib
import json
import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.sdk import internals, validation_errors
from allranks.secrets import redact

_OWN = str(Path(__file__).parents[1])
_MAX_LENGTH = 600
_REASON = re.compile(r"\[Errno -?\d+\] [^'\")>\]]+|CERTIFICATE_VERIFY_FAILED[^'\")]*|IncompleteRead\([^)]*\)")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")

SIGN_IN = (
    "az login, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET of a service principal\n"
    "(all ways: azure-identity's DefaultAzureCredential)"
)


class AzureError(Exception):
    """A failure of the service or of the connection to it, not of the user's input. The command exits with 1.

    The text is the whole message, without secrets.
    """

    def __init__(self, problem: Problem) -> None:
        where, found, expected, fix = map(redact, (problem.where, problem.found, problem.expected, problem.fix))
        self.problem = replace(problem, where=where, found=found, expected=expected, fix=fix)
        super().__init__(str(self.problem))


class SignInError(InputError):
    """No user is signed in to Azure, or the service rejects the sign-in, for example because it has expired."""


class NotFoundError(InputError):
    """The service does not know the requested resource, or not yet."""


@contextlib.contextmanager
def service_errors(doing: str, fix: str = "") -> Iterator[None]:
    """Convert errors of the SDK to InputError, which the user can fix, or AzureError.

    doing: what the block does, for the message: "submitting the job"
    fix:   what to do if something was not found or rejected, unless the service gives a fix
    """
    try:
        yield
    except (InputError, AzureError):
        raise
    except Exception as error:
        message = translate(error, doing, fix)
        if message is None:
            raise
        raise message from None


def translate(error: Exception, doing: str, fix: str = "") -> InputError | AzureError | None:
    """Return the error as InputError or AzureError; None for a bug of allranks, which is not an error of the SDK."""
    # These take 0.2 s to import.
    from azure.core import exceptions as core
    from azure.core.polling.base_polling import OperationFailed

    if isinstance(error, core.ClientAuthenticationError) and error.status_code not in (401, 403):
        where, found = redact(doing), redact(_not_signed_in(error))
        return SignInError(Problem(where, found, "a sign-in", SIGN_IN, code="no-sign-in"))
    if isinstance(error, core.HttpResponseError) and (error.status_code or 200) >= 400:
        return _of_status(error, doing, fix)
    if isinstance(error, core.HttpResponseError) and isinstance(error.__cause__, OperationFailed):
        # The service accepted the request with 200 or 202, and the operation failed later.
        return _wrong(doing, f"the service accepted it, then it failed: {_service_message(error)}", "", fix)
    if isinstance(error, core.ServiceRequestError):
        fix = "check the network, the proxy, and the endpoint, then try again"
        return AzureError(Problem(doing, f"Azure cannot be reached: {_innermost(error)}", "", fix))
    if isinstance(error, (core.ServiceResponseError, core.HttpResponseError, core.DeserializationError)):
        found = f"the response is incomplete or invalid: {_innermost(error)}"
        return AzureError(Problem(doing, found, "", "try again; completed parts are not repeated"))
    if _is_validation(error):
        return _wrong(doing, _short(validation_errors.one_line(error)), "", fix)
    if isinstance(error, core.AzureError):
        return AzureError(Problem(doing, _short(validation_errors.one_line(error)), "", fix))
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or frames[-1].filename.startswith(_OWN):
        return None  # our code raised it, not a library that it called
    found = f"the SDK failed to process the response: {type(error).__name__}: {_short(str(error))}"
    return AzureError(Problem(doing, found))


def _of_status(error: Any, doing: str, fix: str) -> InputError | AzureError:
    status, message = int(error.status_code), _service_message(error)
    if status == 429:
        wait = str(getattr(error.response, "headers", {}).get("Retry-After", ""))
        fix = f"try again in {wait} seconds" if wait.isdecimal() else "try again later"
        return AzureError(Problem(doing, f"too many requests (429), after several tries: {message}", "", fix))
    if status >= 500 or status == 408:
        found = f"the service failed ({status}), after several tries: {message}"
        return AzureError(Problem(doing, found, "", "try again; https://azure.status.microsoft lists outages"))
    kind, found, expected, default_fix = _REFUSALS.get(status, (InputError, "rejected", "", ""))
    fix = default_fix if expected else fix or default_fix
    return _wrong(doing, f"{found} ({status}): {message}", expected, fix, kind)


_CONFLICT = "it exists already, or is being changed"
_OTHER_NAME = "use another name or version, or wait until the other change is complete"
_REFUSALS: Mapping[int, tuple[type[InputError], str, str, str]] = {
    401: (SignInError, "authentication failed", "a sign-in for this tenant", SIGN_IN),
    403: (
        InputError,
        "access denied",
        "a role that allows it, such as AzureML Data Scientist on the workspace",
        "ask an owner of the workspace for the role",
    ),
    404: (NotFoundError, "not found", "", "check the name, and the subscription, resource group and workspace"),
    **dict.fromkeys((409, 412), (InputError, _CONFLICT, "", _OTHER_NAME)),
}
"""The error for each status: its class, what was found, what was expected, and the fix."""


def _wrong(
    where: str, found: str, expected: str = "", fix: str = "", kind: type[InputError] = InputError
) -> InputError:
    return kind(Problem(*map(redact, (where, found, expected, fix))))


def _service_message(error: Any) -> str:
    """Return the message of the service's error, else the beginning of the body, else the name of the status."""
    response = error.response
    with contextlib.suppress(Exception):  # the body may have any format or be consumed already
        body = response.text()
        with contextlib.suppress(ValueError, AttributeError):
            content = json.loads(body)
            content = content.get("error", content)
            if message := content.get("message") or content.get("Message"):
                code = content.get("code", "")
                return _short(f"{code}: {message}" if code and code not in message else str(message))
        if body.strip() and not body.lstrip().startswith("<"):
            return _short(body)
    return _short(str(error.reason or error.message))


def _not_signed_in(error: Any) -> str:
    """Return the relevant part of DefaultAzureCredential's error, which explains ten failed methods."""
    text = str(error.message)
    reasons = re.findall(r"(AADSTS\d+: [^\n]*)", text)
    if reasons:
        return _short(reasons[0])
    if type(error).__name__ == "CredentialUnavailableError" or "Attempted credentials" in text:
        names = re.findall(r"^\s*(\w+Credential): ", text, re.MULTILINE)
        attempts = f"none of {len(names)} methods worked ({', '.join(names)})" if names else text
        return f"nobody is signed in to Azure: {_short(attempts)}"
    return _short(text)


def _is_validation(error: Exception) -> bool:
    """Return whether the SDK rejected its input before it contacted Azure."""
    from marshmallow.exceptions import ValidationError  # takes 0.07 s to import

    ml = internals.exceptions
    if isinstance(error, ml.MlException):
        # The SDK formats validation errors for a terminal, and they lose their type.
        return isinstance(error, (ml.ValidationException, ml.UserErrorException, ml.EmptyDirectoryError)) or (
            error.error_category != ml.ErrorCategory.SYSTEM_ERROR and not isinstance(error.inner_exception, OSError)
        )
    return isinstance(error, ValidationError)


def _innermost(error: BaseException) -> str:
    text = _short(str(error))
    match = _REASON.search(text)
    return match[0].strip() if match else text


def _short(text: str) -> str:
    text = " ".join(_ESCAPES.sub("", text).split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH].rstrip()} ..."
