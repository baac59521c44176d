"""Remove a plan's secrets from its JSON before it is stored or shown, and restore them before it runs.

The functions work on parsed JSON, independent of the plan's classes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan import codec
from allranks.secrets import MASK, SHORTEST, forms, is_secret_name, redact, secrets_in

HIDDEN = "hidden_secrets"
"""The top-level key of a stored plan with the list of places that contain ``***``."""

_VARIABLES = frozenset({"environment_variables", "environmentVariables", "inputs", "parameters"})
"""Keys of mappings from names to values."""
_VALUES = frozenset({"value", "default", "parts"})
"""Keys of a port's value. Other keys name what is bound to it."""

_STRUCTURE = frozenset({"digest", "kind", "mode", "name", "step", "type", "version"})
"""Keys that determine how a plan is parsed. They contain no secrets, and masking them would change the plan."""


@dataclass(frozen=True)
class Hidden:
    """A plan without its secrets.

    plan:   JSON with ``***`` in place of secrets
    values: JSON pointer (RFC 6901) -> the original text
    known:  the secrets, which are also masked elsewhere, such as in the last lines of a log
    """

    plan: str
    values: dict[str, str]
    known: frozenset[str]


def hidden(plan: str) -> Hidden:
    """Return the plan without its secrets: variables and inputs with the name of a secret, and texts that look like
    one.

    Bindings are not masked, because they are not values.
    """
    masked, values, known = _search(json.loads(plan))
    if not values:
        return Hidden(plan, {}, frozenset())
    return Hidden(json.dumps({**masked, HIDDEN: list(values)}), values, frozenset(known))


def shown(tree: Any) -> Any:
    """Return the tree of a plan, or of another job's JSON, without its secrets."""
    return _search(tree)[0]


def restored(plan: str, values: Mapping[str, str], replaced: Container[str] = ()) -> str:
    """Return the plan with its secrets. Raise InputError if `values` lacks one.

    replaced: names of the pipeline's inputs that get new values
    """
    if f'"{HIDDEN}"' not in plan:
        return plan
    try:
        tree = json.loads(plan)
        places = tree.pop(HIDDEN)
    except (ValueError, AttributeError) as error:
        raise InputError(codec.damaged(error)) from None
    names_of_places = {place: _name(tree, place) for place in places}
    places = [place for place in places if place in values or names_of_places[place] not in replaced]
    if missing := [place for place in places if place not in values]:
        names = ", ".join(sorted({names_of_places[place] for place in missing}))
        fix = "set inputs again with --set NAME=VALUE, or read the pipeline again: allranks run FILE"
        found = f"are gone: {names}"
        raise InputError(Problem("secrets of the plan", found, "the file secrets.json", fix, code="secrets-gone"))
    for place in places:
        *parents, last = _parts(place)
        target = _at(tree, parents)
        target[int(last) if isinstance(target, list) else last] = values[place]
    return json.dumps(tree)


def _name(tree: Any, place: str) -> str:
    """Return the name of a secret for messages: that of its port, or else the last part of the pointer."""
    parts = _parts(place)
    for length in range(len(parts) - 1, 0, -1):
        around = _at(tree, parts[:length])
        if isinstance(around, dict) and isinstance(around.get("name"), str):
            is_value = parts[length] in _VALUES
            return around["name"] if is_value else parts[-1]
    return parts[-1]


def _parts(place: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in place.split("/")[1:]]


def _at(tree: Any, parts: list[str]) -> Any:
    for part in parts:
        tree = tree[int(part) if isinstance(tree, list) else part]
    return tree


def _search(tree: Any) -> tuple[Any, dict[str, str], set[str]]:
    """Return the tree without its secrets, the original texts by their pointers, and the secrets."""
    values: dict[str, str] = {}
    known: set[str] = set()

    def mask(text: str, pointer: str, secret: bool) -> str:
        is_whole = secret and bool(text) and not (text.startswith("${{") and text.endswith("}}"))
        shown = MASK if is_whole else redact(text)
        if shown != text:
            values[pointer] = text
            secrets = {*secrets_in(text), *((text,) if is_whole else ())}
            known.update(each for each in secrets if len(each) >= SHORTEST)
        return shown

    def remove_known(text: str, pointer: str, _secret: bool) -> str:
        shown = redact(text, known)
        if shown != text:
            values.setdefault(pointer, text)
        return shown

    masked = _changed(tree, mask)
    # The value of a variable may also occur in a command.
    text = json.dumps(masked) if known else ""
    if any(form in text for form in forms(frozenset(known))):
        masked = _changed(masked, remove_known)
    return masked, values, known


def _changed(value: Any, change: Callable[[str, str, bool], str], pointer: str = "", secret: bool = False) -> Any:
    """Return a tree with its texts changed.

    change:  takes a text, its pointer, and whether all of it is a secret
    pointer: of the tree
    secret:  whether every text in it is a secret
    """
    if isinstance(value, str):
        return change(value, pointer, secret)
    if isinstance(value, list):
        return [_changed(item, change, f"{pointer}/{index}", secret) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    pointers = {key: f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}" for key in value}
    if pointer.rpartition("/")[2] in _VARIABLES:
        return {key: _changed(item, change, pointers[key], is_secret_name(key)) for key, item in value.items()}
    has_value = secret or (isinstance(value.get("name"), str) and is_secret_name(value["name"]))
    return {
        key: item if key in _STRUCTURE else _changed(item, change, pointers[key], has_value and key in _VALUES)
        for key, item in value.items()
    }
