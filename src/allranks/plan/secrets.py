"""A plan's secrets: taken out of its JSON before it is stored or shown, and put back before it runs.

Works on the tree of the JSON, whatever the plan's classes are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from allranks.errors import InputError, Problem
from allranks.secrets import MASK, SHORTEST, is_secret_name, redact, secrets_in

HIDDEN = "hidden_secrets"
"""The key, at the top of a stored plan, of the places that hold ``***``."""

_VARIABLES = frozenset({"environment_variables", "environmentVariables", "inputs", "parameters"})
"""Keys of mappings by name."""
_VALUES = frozenset({"value", "default", "parts"})
"""Keys of what stands for a port; others name what is bound to it."""


_STRUCTURE = frozenset({"digest", "kind", "mode", "name", "step", "type", "version"})
"""Keys of texts by which a plan is read. None of them holds a secret, and a masked one would be another plan."""


@dataclass(frozen=True)
class Hidden:
    """A plan without its secrets.

    plan:   its JSON, with ``***`` where they were
    values: place -> the text that stood there; a place is a JSON pointer (RFC 6901)
    known:  the secrets themselves, to be masked wherever else they occur, such as in a log's last lines
    """

    plan: str
    values: Mapping[str, str]
    known: frozenset[str]


def hidden(plan: str) -> Hidden:
    """Return the plan without its secrets: variables and inputs with a secret's name, and texts with a secret's shape.

    A binding stays, since it is no value.
    """
    masked, search = _search(json.loads(plan))
    if not search.values:
        return Hidden(plan, {}, frozenset())
    return Hidden(json.dumps({**masked, HIDDEN: list(search.values)}), search.values, frozenset(search.known))


def shown(tree: Any) -> Any:
    """Return the tree of a plan, or of another job's JSON, without its secrets."""
    return _search(tree)[0]


def restored(plan: str, values: Mapping[str, str]) -> str:
    """Return the plan with its secrets. Raise InputError where the values lack one."""
    if f'"{HIDDEN}"' not in plan:
        return plan
    tree = json.loads(plan)
    places = tree.pop(HIDDEN)
    if missing := [place for place in places if place not in values]:
        names = ", ".join(sorted({place.rpartition("/")[2] for place in missing}))
        fix = "read the pipeline again: allranks run FILE, or allranks schedules run FILE"
        raise InputError(Problem("secrets of the plan", f"are gone: {names}", "the file secrets.json", fix))
    for place in places:
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in place.split("/")[1:]]
        target = tree
        for part in parents:
            target = target[int(part) if isinstance(target, list) else part]
        target[int(last) if isinstance(target, list) else last] = values[place]
    return json.dumps(tree)


def _search(tree: Any) -> tuple[Any, _Search]:
    search = _Search()
    masked = search.masked(tree, secret=False)
    # What stands in a variable may stand in a command too.
    text = json.dumps(masked) if search.known else ""
    if any(json.dumps(secret)[1:-1] in text for secret in search.known):
        masked = search.without_known(masked)
    return masked, search


class _Search:
    """One pass over a plan, and what it has found so far."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.known: set[str] = set()
        self._place: list[str | int] = []

    def masked(self, value: Any, *, secret: bool) -> Any:
        """Return the tree with its secrets masked. secret: whether every text in it is one."""
        if isinstance(value, str):
            is_whole = secret and bool(value) and not (value.startswith("${{") and value.endswith("}}"))
            shown = MASK if is_whole else redact(value)
            if shown != value:
                self.values[self._pointer()] = value
                found = {*secrets_in(value), *((value,) if is_whole else ())}
                self.known |= {text for text in found if len(text) >= SHORTEST}
            return shown
        if isinstance(value, list):
            return [self._at(index, item, secret) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if self._is_by_name():
            return {key: self._at(key, item, is_secret_name(key)) for key, item in value.items()}
        has_value = secret or (isinstance(value.get("name"), str) and is_secret_name(value["name"]))
        return {
            key: item if key in _STRUCTURE else self._at(key, item, has_value and key in _VALUES)
            for key, item in value.items()
        }

    def without_known(self, value: Any) -> Any:
        """Return the tree without the secrets that are known by now."""
        if isinstance(value, str):
            shown = redact(value, self.known)
            if shown != value:
                self.values.setdefault(self._pointer(), value)
            return shown
        if isinstance(value, list):
            return [self._at(index, item) for index, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        by_name = self._is_by_name()
        return {key: item if key in _STRUCTURE and not by_name else self._at(key, item) for key, item in value.items()}

    def _at(self, key: str | int, item: Any, secret: bool | None = None) -> Any:
        """Go on with an item of the tree. secret: as for `masked`; None continues `without_known`."""
        self._place.append(key)
        found = self.without_known(item) if secret is None else self.masked(item, secret=secret)
        self._place.pop()
        return found

    def _is_by_name(self) -> bool:
        return bool(self._place) and self._place[-1] in _VARIABLES

    def _pointer(self) -> str:
        return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in self._place)
