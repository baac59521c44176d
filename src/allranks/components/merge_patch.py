"""Apply a JSON merge patch (RFC 7386) to a spec, with one addition for texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TEXTS = ("command", "description")
"""Keys of texts in which a patch may replace parts."""


def merged(target: Any, patch: Any) -> Any:
    """Return the target with the patch applied. Neither is changed.

    A mapping is merged key by key, null removes a key, and anything else replaces the target. In place of a command or
    a description, a mapping replaces parts of the text: each key is a part, its value what stands there instead.
    `mismatches` returns what does not apply.
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif _is_text(key, result.get(key), value):
            result[key] = _with_parts(result[key], value)
        else:
            result[key] = merged(result.get(key), value)
    return result


def mismatches(target: Any, patch: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the keys of a patch that have no effect, or an unclear one, each with the reason."""
    if not isinstance(patch, Mapping):
        return
    existing = target if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        path = (*keys, str(key))
        if value is None and key not in existing:
            yield path, "it removes what is not there"
        elif _is_text(key, existing.get(key), value):
            for part in value:
                count = " ".join(existing[key].split()).count(" ".join(str(part).split()))
                if count != 1:
                    yield path, f"the text has {str(part)!r} {count} times, not once"
        else:
            yield from mismatches(existing.get(key), value, path)


def _is_text(key: Any, target: Any, patch: Any) -> bool:
    return key in TEXTS and isinstance(target, str) and isinstance(patch, Mapping)


def _with_parts(text: str, parts: Mapping[Any, Any]) -> str:
    text = " ".join(text.split())
    for part, value in parts.items():
        text = text.replace(" ".join(str(part).split()), " ".join(str(value or "").split()))
    return " ".join(text.split())
