"""Problems that the readers of pipelines and of components report with the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime

from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.single import Single
from allranks.errors import Problem, did_you_mean
from allranks.sdk.schema_unions import MISSING_KEY
from allranks.sdk.validation_errors import MISSING_FILE
from allranks.secrets import quoted

_EXPECTATION = ("one of ", "a ", "keys and values", "azureml:")
"""The beginnings of messages that say what is allowed and no more."""
_NOT_AN_EXPECTATION = ("Invalid", "Not a valid", "Value ", "Field ")
"""The beginnings of messages that say what is wrong, not what is allowed."""


def unknown_key(where: str, similar: str) -> Problem:
    """Return the problem of a key that Azure ML does not have. similar: the key that was probably meant; "" if
    unknown"""
    fix = f"did you mean {similar}?" if similar else "remove it, or correct its name"
    return Problem(where, "Azure ML has no such key", fix=fix, code="unknown-key")


def unknown_distribution(kind: str, where: str) -> Iterator[Problem]:
    """Yield the problem of a distribution whose type is unknown."""
    types = [name for name in DISTRIBUTIONS if name != Single.type]
    if kind.lower() not in types:
        yield Problem(where, repr(kind), f"one of {', '.join(types)}", did_you_mean(kind.lower(), types))


def described(value: object) -> str:
    if isinstance(value, dict):
        names = ", ".join(map(str, value))
        return f"keys and values: {names}" if len(names) in range(1, 80) else "keys and values"
    return "a list" if isinstance(value, list) else "nothing" if value is None else repr(value)


def refused(where: str, key: str, value: object, message: str, unquoted: str | None = None) -> Problem:
    """Return the problem of a key that the SDK refuses.

    value:    its value; None if it is unknown
    message:  the SDK's, in the short form of `allranks.sdk.validation_errors`
    unquoted: the value as it is in the file, if YAML does not read it as text
    """
    if message.startswith(MISSING_KEY):
        return Problem(where, "the key is missing", message.removeprefix(MISSING_KEY).strip(), "add it")
    if message == "Field may not be null.":
        return Problem(where, "the key has no value", "a value", "write one, or remove the key")
    if message.endswith(MISSING_FILE):
        return Problem(where, message, "a path, relative to this file")
    is_expectation = message.startswith(_EXPECTATION)
    if unquoted is not None and is_expectation:
        return Problem(where, *_unquoted(unquoted, value, message))
    if value is None:
        return Problem(where, "azure-ai-ml refuses it", message) if is_expectation else Problem(where, message)
    found = described(value) if isinstance(value, (dict, list)) else quoted(key.replace(".", "_"), value)
    if isinstance(value, str) and key.rpartition(".")[2] == "default_compute" and message == "one of serverless":
        # A cluster is allowed too, but the SDK's message has the other choice only.
        return Problem(where, found, "azureml:NAME for a cluster, or serverless", f"write azureml:{value}")
    if message.startswith(_NOT_AN_EXPECTATION) or " must not " in message:
        return Problem(where, f"{found}: {message}", fix="correct the value")
    allowed = re.split(r", | or ", message.removeprefix("one of ")) if message.startswith("one of ") else []
    return Problem(where, found, message, did_you_mean(value.lower(), allowed) if isinstance(value, str) else "")


def _unquoted(written: str, value: object, expected: str) -> tuple[str, str, str]:
    """Return what was found, what was expected, and the fix, of a value that YAML does not read as text.

    written: the value as it is in the file
    """
    if value is None:
        return "the key has no value", expected, "write one, or remove the key"
    kinds = {datetime: "a time", date: "a date", bool: f"{value}".lower()}
    kind = kinds.get(type(value), "a number" if written == str(value) else f"the number {value}")
    if "a text" in expected:
        return f"{written}, which YAML reads as {kind}", expected, f'put it in quotes: "{written}"'
    return (written if kind in (written, "a number") else f"{written}, which YAML reads as {kind}"), expected, ""
