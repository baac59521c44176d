"""Read a job's YAML file without the keys that azure-ai-ml refuses, so that a check finds what else is wrong in it."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from allranks.errors import Level, Problem
from allranks.plan.exact_places import key_in
from allranks.plan.reader.yaml_file import YamlFile
from allranks.plan.rules import IGNORED_KEY

_MEANT = re.compile(r"did you mean (\w+)\?")
_BINDING = re.compile(r"\$\{\{\s*parent\.[^{}]*}}")
_NEEDED = frozenset(["command", "component", "inputs", "jobs", "outputs", "task", "trial", "type"])
"""Keys whose removal would cause other problems."""


def corrected(file: YamlFile, problems: Iterable[Problem]) -> YamlFile | None:
    """Return the file without the keys that the problems name, or with the correct ones in their place. Return None if
    a problem has no such key."""
    tree = copy.deepcopy(file.text.tree)
    for problem in problems:
        is_unknown = problem.code == "unknown-key" or problem.rule == IGNORED_KEY.code
        if problem.level is not Level.ERROR and not is_unknown:
            continue
        *parents, name = key_in(problem.where, file.text).split(".")
        owner: Any = tree
        for part in parents:
            owner = owner.get(part) if isinstance(owner, dict) else None
        if not isinstance(owner, dict) or name not in owner:
            return None
        value = owner.pop(name)
        if is_unknown:
            if meant := _MEANT.fullmatch(problem.fix):
                owner.setdefault(meant[1], value)
        elif isinstance(value, str) and _BINDING.search(value):
            owner[name] = _BINDING.sub("x", value)  # the port stays
        elif not _NEEDED.isdisjoint([name, *parents[-1:]]):
            return None
    return replace(file, text=replace(file.text, tree=tree, warnings=()), is_corrected=True)


def is_new(problem: Problem, known: Iterable[Problem]) -> bool:
    """Return whether a problem is at none of the known places, nor at a key that contains one of them."""
    places = [each.where for each in known]
    step, key = _step_and_key(problem.where)
    lost = [inner for owner, inner in map(_step_and_key, places) if owner in ("", step)]
    return problem.where not in places and not (key and any(inner.startswith(f"{key}.") for inner in lost))


def _step_and_key(place: str) -> tuple[str, str]:
    step, _, key = place.partition("key ")
    return step, key.partition(" (")[0]
