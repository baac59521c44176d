"""The lines of keys in messages. Plans know the line of a step; its file knows those of the keys inside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.sdk import yaml_lines
from allranks.sdk.paths import shown
from allranks.sdk.yaml_lines import YamlText

_PLACE = re.compile(r"(?P<owner>step (?P<step>\S+), |.*, )?key (?P<key>\S+) \((?P<file>.+?)(?P<line>:\d+)?\)")


def with_key_lines(problems: Iterable[Problem], source: str) -> list[Problem]:
    """Return the problems, each with the line of the key that it names, if the file is YAML and has the key.

    source: the file of the pipeline
    """
    problems = list(problems)
    path = Path(source)
    if path.suffix.lower() not in (".yml", ".yaml") or not any(_PLACE.fullmatch(each.where) for each in problems):
        return problems
    try:
        text = yaml_lines.parse(path)
    except InputError:
        return problems
    return [replace(problem, where=_with_key_lines(problem.where, text)) for problem in problems]


def _with_key_lines(where: str, text: YamlText) -> str:
    match, key = _PLACE.fullmatch(where), key_in(where, text)
    root = f"jobs.{match['step'].replace('.', '.jobs.')}" if match and match["step"] and "jobs" in text.tree else ""
    while key and key != root and key not in text.lines:
        key = key.rpartition(".")[0]
    if match is None or not key:
        return where
    line = text.lines.get(key)
    return where if line is None else f"{where[: match.end('file')]}:{line})"


def key_in(where: str, text: YamlText) -> str:
    """Return the key that a place of a message names in a file, such as ``jobs.train.code``; "" if it names none."""
    match = _PLACE.fullmatch(where)
    if match is None or match["file"] != shown(text.path):
        return ""
    root = f"jobs.{match['step'].replace('.', '.jobs.')}." if match["step"] and "jobs" in text.tree else ""
    keys = [f"{root}{section}{match['key']}" for section in ("", "trial.", "task.")]
    return next((key for key in keys if key in text.lines), keys[0])
