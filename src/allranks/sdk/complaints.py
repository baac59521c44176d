"""Convert azure-ai-ml's errors to short messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from allranks.sdk.paths import shown

_MAX_LENGTH = 300
MISSING_FILE = " does not exist"
"""The end of a message about a file."""


def is_own(error: BaseException) -> bool:
    """Return whether an exception is the SDK's own, whose message is meant for the user."""
    return type(error).__module__.partition(".")[0] in ("azure", "marshmallow", "mldesigner", "msrest")


def said(error: BaseException) -> list[tuple[str, Any, str]]:
    """Return the SDK's complaints: (key such as ``jobs.train.inputs.lr``, its value or None, message).

    Schema errors are JSON within a text, sometimes nested. The message of any other error is its first paragraph.
    """
    by_key: dict[str, tuple[str, Any, str]] = {}
    for complaint in _complaints(str(error), "", None):
        # If several types are allowed, the SDK reports an error for each. The missing file is the most likely one.
        if complaint[0] not in by_key or complaint[2].endswith(MISSING_FILE):
            by_key[complaint[0]] = complaint
    return list(by_key.values()) or [("", None, type(error).__name__)]


def one_line(error: BaseException) -> str:
    """Return an exception's message in one line, for the end of a sentence."""
    if not is_own(error):
        text = _shortened(str(error))
        return f"{type(error).__name__}: {text}" if text else type(error).__name__
    return _shortened("; ".join(f"{key}: {text}" if key else text for key, _, text in said(error)))


def _complaints(text: str, key: str, value: Any) -> Iterator[tuple[str, Any, str]]:
    parsed = _json_in(text)
    if isinstance(parsed, dict) and isinstance(parsed.get("errors"), list):
        for error in parsed["errors"]:
            path = str(error.get("path", "*"))
            inner = key if path == "*" else f"{key}.{path}".lstrip(".")
            yield from _complaints(str(error.get("message", "")), inner, _plain(error.get("value")))
    elif isinstance(parsed, dict) and text.startswith("Validation for"):
        for inner, message in _leaves(parsed, key):
            yield inner, None, _meaning(message)
    else:
        yield key, value, _meaning(text)


def _meaning(text: str) -> str:
    """Return a complaint in short form."""
    return _shortened(_choices(text) or _missing_file(text) or _kinds(text) or _reference(text) or text)


def _json_in(text: str) -> Any:
    if not text.startswith("Validation for") and '"errors"' not in text:
        return None
    start = text.find("{")
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0]
    except ValueError:
        return None


def _leaves(errors: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(errors, dict):
        for name, inner in errors.items():
            yield from _leaves(inner, key if name == "_schema" else f"{key}.{name}".lstrip("."))
    elif isinstance(errors, list):
        for inner in errors:
            yield from _leaves(inner, key)
    else:
        yield key, str(errors)


def _choices(text: str) -> str:
    """Return the allowed values, if a value matches none of several schemas; "" if they are not listed."""
    choices = [name for group in re.findall(r"passed is not in set \[([^\]]*)\]", text) for name in group.split(", ")]
    if not choices:
        return ""
    return "one of " + ", ".join(dict.fromkeys(name.strip("'\"\\") for name in choices))


def _kinds(text: str) -> str:
    """Return the expected types from a list of complaints such as "Not a valid integer."; "" for other texts."""
    kinds = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
    kinds["mapping"] = "keys and values"
    text = text.replace("Invalid input type.", "Not a valid mapping.").replace("mapping type.", "mapping.")
    parts = [part for part in text.split("; ") if not part.startswith("Value passed is not a data binding string")]
    types = [match[1] for part in parts if (match := re.fullmatch(r"Not a valid (?:\w+ )*(\w+)\.", part))]
    return (
        " or ".join(dict.fromkeys(kinds.get(kind, f"a {kind}") for kind in types)) if len(types) == len(parts) else ""
    )


def _reference(text: str) -> str:
    """Return the expected forms of a reference, if the SDK explains that it accepts a name or a definition; else ""."""
    if "In order to specify an existing" in text or text.endswith("schema data cannot be a string"):
        return "azureml:NAME:VERSION where it is registered, or else its definition"
    return ""


def _missing_file(text: str) -> str:
    match = re.search(r"(?:No such file or directory|in resolved absolute path): ([^\]'\"]+?)\.?(?:[\]'\"]|$)", text)
    return f"{shown(match[1])}{MISSING_FILE}" if match else ""


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return _shortened(json.dumps(value, default=str))


def _shortened(text: str) -> str:
    text = " ".join(text.strip().split("\n\n", 1)[0].split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH].rstrip()} ..."
