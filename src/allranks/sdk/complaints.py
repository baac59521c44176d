"""What azure-ai-ml's errors say, in a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from allranks.sdk.paths import shown

_LONGEST = 300
_MISSING = " does not exist"


def is_own(error: BaseException) -> bool:
    """Return whether an exception is the SDK's own, whose message speaks to the user."""
    return type(error).__module__.partition(".")[0] in ("azure", "marshmallow", "mldesigner", "msrest")


def said(error: BaseException) -> list[tuple[str, Any, str]]:
    """Return what the SDK complains of: (key such as ``jobs.train.inputs.lr``, what stands there or None, what it says
    of it).

    Its schema errors are JSON in the middle of a text, sometimes with another such text inside; of anything else the
    first paragraph is taken.
    """
    found: dict[str, tuple[str, Any, str]] = {}
    for complaint in _complaints(str(error), "", None):
        # Of a value that may be of several kinds it says for each kind why it is none. A file is the likeliest one.
        if complaint[0] not in found or complaint[2].endswith(_MISSING):
            found[complaint[0]] = complaint
    return list(found.values()) or [("", None, type(error).__name__)]


def one_line(error: BaseException) -> str:
    """Return what an exception says, for the end of a sentence."""
    if not is_own(error):
        text = _shortened(str(error))
        return f"{type(error).__name__}: {text}" if text else type(error).__name__
    return _shortened("; ".join(f"{key}: {text}" if key else text for key, _, text in said(error)))


def _complaints(text: str, key: str, value: Any) -> Iterator[tuple[str, Any, str]]:
    found = _json_in(text)
    if isinstance(found, dict) and isinstance(found.get("errors"), list):
        for error in found["errors"]:
            path = str(error.get("path", "*"))
            inner = key if path == "*" else f"{key}.{path}".lstrip(".")
            yield from _complaints(str(error.get("message", "")), inner, _plain(error.get("value")))
    elif isinstance(found, dict) and text.startswith("Validation for"):
        for inner, message in _leaves(found, key):
            yield inner, None, _meaning(message)
    else:
        yield key, value, _meaning(text)


def _meaning(text: str) -> str:
    """Return what a complaint comes down to."""
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
    """Of a value that fits none of several schemas: what any of them takes, where they say so."""
    choices = [name for found in re.findall(r"passed is not in set \[([^\]]*)\]", text) for name in found.split(", ")]
    if not choices:
        return ""
    return "one of " + ", ".join(dict.fromkeys(name.strip("'\"\\") for name in choices))


def _kinds(text: str) -> str:
    """Return what a value should have been, of a list of complaints such as "Not a valid integer."."""
    kinds = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
    parts = [part for part in text.split("; ") if not part.startswith("Value passed is not a data binding string")]
    found = [match[1] for part in parts if (match := re.fullmatch(r"Not a valid (?:\w+ )*(\w+)\.", part))]
    return (
        " or ".join(dict.fromkeys(kinds.get(kind, f"a {kind}") for kind in found)) if len(found) == len(parts) else ""
    )


def _reference(text: str) -> str:
    """Of a text that should be the name of something registered, or a definition, where the SDK explains both."""
    if "In order to specify an existing" in text or text.endswith("schema data cannot be a string"):
        return "azureml:NAME:VERSION where it is registered, or else its definition"
    return ""


def _missing_file(text: str) -> str:
    found = re.search(r"(?:No such file or directory|in resolved absolute path): ([^\]'\"]+?)\.?(?:[\]'\"]|$)", text)
    return f"{shown(found[1])}{_MISSING}" if found else ""


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return _shortened(json.dumps(value, default=str))


def _shortened(text: str) -> str:
    text = " ".join(text.strip().split("\n\n", 1)[0].split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} ..."
