"""The rules of an `.amlignore` or `.gitignore`, as azure-ai-ml interprets them.

The SDK reads the file of one folder, `.amlignore` before `.gitignore`, and matches relative names as strings: the last
matching rule decides. It never reads ignore files of parent folders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.sdk import internals
from allranks.sdk.paths import shown

NAMES = (".amlignore", ".gitignore")
"""In the order in which the SDK looks for them; only the first one found is read."""


@dataclass(frozen=True)
class IgnoreRules:
    """The rules of one file.

    file:     its name, for messages
    patterns: the SDK's own patterns, in the file's order
    """

    file: str = ""
    patterns: tuple[Any, ...] = ()

    def exclude(self, name: str) -> bool:
        """Return whether a file is excluded. name: relative to the folder of the rules; "." is that folder."""
        excluded = False
        for pattern in self.patterns:
            if pattern.match_file(name) is not None:
                excluded = pattern.include
        return excluded

    def exclude_all_in(self, folder: str) -> bool:
        """Return whether everything in a folder is excluded, so that it need not be read.

        A rule that matches a folder's name, with or without a slash at its end, matches all of its content. A later
        rule with an exclamation mark can include single files again.
        """
        whole = False
        for pattern in self.patterns:
            matches = any(pattern.match_file(name) is not None for name in (folder, f"{folder}/"))
            whole = pattern.include and (whole or matches)
        return whole and folder != "."


NO_RULES = IgnoreRules()


def rules_of(folder: Path) -> IgnoreRules:
    """Return the rules of the ignore file in a folder. Raise InputError if it cannot be read."""
    file = next((folder / name for name in NAMES if (folder / name).exists()), None)
    return read_rules(file) if file else NO_RULES


def read_rules(file: Path) -> IgnoreRules:
    """Return the rules of an ignore file. Raise InputError if it cannot be read."""
    try:
        # Opening a pipe would block until its other end is opened.
        lines = internals.ignored_patterns(file) if file.is_file() else None
    except (OSError, ValueError) as error:
        raise InputError(Problem(shown(file), f"it cannot be read: {error}", "a text file in UTF-8")) from None
    if lines is None:
        raise InputError(Problem(shown(file), "it is not a file", "a text file with patterns"))
    return IgnoreRules(file.name, _patterns(file, lines))


def _patterns(file: Path, lines: Sequence[str]) -> tuple[Any, ...]:
    patterns = []
    for number, line in enumerate(lines, start=1):
        try:
            pattern = internals.GitWildMatchPattern(line)
        except ValueError as error:
            found = f"{line!r}, which is not a pattern: {error}"
            raise InputError(Problem(f"{shown(file)}:{number}", found, fix="correct the line")) from None
        if pattern.include is not None:
            patterns.append(pattern)
    return tuple(patterns)
