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

MOST_READINGS = 5
_MEANT = re.compile(r"did you mean (\w+)\?")
_BINDING = re.compile(r"\$\{\{\s*parent\.[^{}]*}}")
_NEEDED = frozenset(["command", "component", "inputs", "jobs", "outputs", "task", "trial", "type"])
"""Keys whose removal would cause other problems."""


def corrected(file: YamlFile, problems: Iterable[Problem]) -> tuple[YamlFile, list[str]] | None:
    """Return the file without the keys that the problems name, or with the correct ones in their place, and those keys.
    Return None if a problem has no such key."""
    tree, keys = copy.deepcopy(file.text.tree), []
    for problem in problems:
        if problem.level is not Level.ERROR and problem.rule != IGNORED_KEY.code:
            continue
        key = key_in(problem.where, file.text)
        if not key or not _correct(tree, key, problem):
            return None
        keys.append(key)
    return replace(file, text=replace(file.text, tree=tree, repeated=()), is_corrected=True), keys


def _correct(tree: dict[str, Any], key: str, problem: Problem) -> bool:
    *parents, name = key.split(".")
    owner: Any = tree
    for part in parents:
        owner = owner.get(part) if isinstance(owner, dict) else None
    if not isinstance(owner, dict) or name not in owner:
        return False
    value = owner[name]
    if problem.code == "unknown-key" or problem.rule == IGNORED_KEY.code:
        del owner[name]
        if meant := _MEANT.fullmatch(problem.fix):
            owner.setdefault(meant[1], value)
        return True
    if isinstance(value, str) and _BINDING.search(value):
        # The port stays. What it is bound to is reported already.
        owner[name] = _BINDING.sub("x", value)
        return True
    if name in _NEEDED or (parents and parents[-1] in _NEEDED):
        return False
    del owner[name]
    return True


def is_new(problem: Problem, known: Iterable[Problem], file: YamlFile, keys: Iterable[str]) -> bool:
    """Return whether a problem is none of those known, and not at a key that was removed or replaced, or that now lacks
    such a key."""
    key = key_in(problem.where, file.text) or ""
    is_at = any(f"{key}.".startswith(f"{each}.") or key == each.rpartition(".")[0] != "" for each in keys)
    return problem not in list(known) and not is_at
