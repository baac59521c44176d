"""Errors in a user's input: the place, what was found, what was expected, and the fix."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import Path


class Level(str, Enum):
    """How serious a problem is."""

    ERROR = "error"
    """The input cannot be used as it is written."""

    WARNING = "warning"
    """Azure ML accepts it, but it probably does not do what was intended."""

    ADVICE = "advice"
    """It would be easier to use in the designer. This is the style of this project, which others need not share."""

    MACHINE = "this machine"
    """This machine lacks something, such as a package."""


@dataclass(frozen=True)
class Problem:
    """A mistake in the user's input, found by a rule or while reading it.

    where:    the place, as precisely as possible: "step train, key instance_count (pipeline.py:31)"
    found:    what is there
    expected: what is allowed there
    fix:      what to do, as a sentence or a command
    code:     the section of docs/reference/troubleshooting.md that explains it; "" if there is none
    rule:     the rule that found it; "" if there is none
    ignorable: whether a comment can ignore it
    """

    where: str
    found: str
    expected: str = ""
    fix: str = ""
    # The explanation, the rule and the level do not make another problem.
    code: str = field(default="", compare=False)
    rule: str = field(default="", compare=False)
    level: Level = field(default=Level.ERROR, compare=False, kw_only=True)
    ignorable: bool = field(default=False, compare=False, kw_only=True)

    @property
    def more(self) -> str:
        """The command that explains the problem, or ""."""
        return f"allranks why {self.code}" if self.code else ""

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.found}" if self.where else self.found]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        if self.more:
            lines.append(f"  more: {self.more}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Location:
    """A line of the user's files. cell: of a notebook, from 1; 0 if the file is not a notebook. column: 0 if unknown"""

    file: str
    line: int
    cell: int = 0
    column: int = 0

    @classmethod
    def named_in(cls, where: str) -> Location | None:
        """Return the location in the place of a problem, such as ``step a, key b (pipeline.yml:12)``.

        Its line and column are 0 if the place does not have them. Return None if it names no existing file.
        """
        pattern = r"(.+?)(?::(\d+)(?::(\d+))?|, cell (\d+), line (\d+))?"
        inner = [where[match.end() : -1] for match in re.finditer(r" \(", where) if where.endswith(")")]
        for text in (where, *inner):
            while text:
                match = re.fullmatch(pattern, text, re.DOTALL)
                if match and os.path.isfile(match[1]):
                    line, column, cell, line_of_cell = (int(number or 0) for number in match.groups()[1:])
                    return cls(match[1], line or line_of_cell, cell, column)
                text = text.rpartition(", ")[0]
        return None

    def __str__(self) -> str:
        return f"{self.file}, cell {self.cell}, line {self.line}" if self.cell else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class StepPlace:
    """A step as the place of a problem. step: its path in the pipeline"""

    step: str
    location: Location | None = None

    def __str__(self) -> str:
        """Return ``step train (pipeline.py:31)``."""
        return f"step {self.step}{self._at}"

    def key(self, key: str) -> str:
        """Return ``step train, key resources.instance_count (pipeline.py:31)``."""
        return f"step {self.step}, key {key}{self._at}"

    @property
    def _at(self) -> str:
        return f" ({self.location})" if self.location else ""


@dataclass(frozen=True)
class Rule:
    """A rule of `allranks check`.

    code:            the name in a comment that ignores it: ``# allranks: ignore CODE``
    what:            what it finds
    source:          the document, the issue or the file of azure-ai-ml that states it
    fix:             what to do
    accepted_by_sdk: whether azure-ai-ml accepts what an error of this rule names. A comment can ignore such an error
    about:           what it checks: component, plan or environment; several are separated by spaces
    """

    code: str
    level: Level
    what: str
    source: str
    fix: str
    accepted_by_sdk: bool = False
    about: str = ""

    @classmethod
    def named(cls, code: str) -> Rule:
        """Return a rule of rules.csv. Raise KeyError if the table has none with this name."""
        return _rules()[code]

    @classmethod
    def all_about(cls, *subjects: str) -> tuple[Rule, ...]:
        """Return the rules of rules.csv that check a component, a plan or an environment, in the order of these."""
        return tuple(rule for subject in subjects for rule in _rules().values() if subject in rule.about.split())

    @property
    def ignorable(self) -> bool:
        """Whether a comment can ignore its findings."""
        return self.level in (Level.WARNING, Level.ADVICE) or self.accepted_by_sdk

    def problem(self, where: str, found: str, expected: str = "", fix: str = "") -> Problem:
        """Return a finding of this rule. fix: what to do here, by default the rule's fix"""
        return next(self.mark([Problem(where, found, expected, fix or self.fix)]))

    def mark(self, problems: Iterable[Problem]) -> Iterator[Problem]:
        """Yield the problems as findings of this rule, except findings of other rules."""
        for problem in problems:
            level = problem.level if problem.level is Level.MACHINE else self.level
            yield problem if problem.rule else replace(problem, rule=self.code, level=level, ignorable=self.ignorable)


@cache
def _rules() -> Mapping[str, Rule]:
    import csv  # takes 0.01 s to import on each rank, which makes no check

    with Path(__file__).with_name("rules.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return {
        code: Rule(code, Level(level), what, source, fix, accepted_by_sdk == "yes", about)
        for code, about, level, accepted_by_sdk, what, source, fix in rows
    }


def finding(code: str, where: str, found: str, expected: str = "", fix: str = "") -> Problem:
    """Return a finding of the rule with this code. fix: what to do in this place; by default the rule's fix."""
    return Rule.named(code).problem(where, found, expected, fix)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", *, cutoff: float = 0.6) -> str:
    """Return the fix for an unknown name: ``did you mean lr?``. otherwise: the fix if no known name is similar"""
    from difflib import get_close_matches  # takes 0.01 s to import, and correct input does not need it

    near = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}?" if near else otherwise


class InputError(Exception):
    """The user's input cannot be used.

    Nothing was started or changed. The command exits with code 2.
    """

    def __init__(self, *problems: Problem) -> None:
        self.problems = tuple(dict.fromkeys(problems))  # several steps may have the same one
        super().__init__("\n".join(str(problem) for problem in problems))

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback."""
        return str(self).splitlines()

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> InputError:
        return cls(*problems)


class Problems(list[Problem]):
    """Problems that are raised together: ``with problems:`` adds those of an InputError that the block raises."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        if isinstance(error, InputError):
            self += error.problems
        return isinstance(error, InputError)


def raise_any(problems: Iterable[Problem]) -> None:
    """Raise InputError with the problems if there are any."""
    if found := tuple(problems):
        raise InputError(*found)
