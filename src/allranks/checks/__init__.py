"""The rules of `allranks check`, in tables by what they look at: a plan, a component, an environment.

A rule is one function, which yields what it finds, and one row of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from allranks.errors import Level, Problem, Rule


class Row:
    """A function of what the table's rules look at, and the rules of what it yields; by default the first one."""

    def __init__(self, function: Callable[..., Iterable[Problem]], *rules: Rule) -> None:
        self.function, self.rules = function, rules

    def __call__(self, *subject: Any) -> Iterator[Problem]:
        """Yield what is wrong with the subject."""
        return self.rules[0].mark(self.function(*subject))


def rules_of(*tables: Iterable[Row]) -> tuple[Rule, ...]:
    """Return the rules of tables, each once."""
    return tuple({rule.code: rule for table in tables for row in table for rule in row.rules}.values())


@dataclass(frozen=True)
class Findings:
    """What a check has found."""

    found: tuple[Problem, ...] = ()

    def of(self, level: Level) -> tuple[Problem, ...]:
        """Return the findings of a level, each once."""
        return tuple(dict.fromkeys(problem for problem in self.found if problem.level is level))

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The input cannot be used until they are solved."""
        return self.of(Level.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The input can be used, and probably does something else than was meant."""
        return self.of(Level.WARNING)

    @property
    def advice(self) -> tuple[Problem, ...]:
        """What could be better, in the style of this project."""
        return self.of(Level.ADVICE)

    @property
    def machine(self) -> tuple[Problem, ...]:
        """What this machine lacks, such as a package."""
        return self.of(Level.MACHINE)

    def strict(self) -> Findings:
        """Return the findings with warnings and advice as errors."""
        raised = (Level.WARNING, Level.ADVICE)
        found = (replace(problem, level=Level.ERROR) if problem.level in raised else problem for problem in self.found)
        return Findings(tuple(found))

    def by_kind(self) -> dict[str, tuple[Problem, ...]]:
        """Return the findings as `--json` prints them."""
        return {"problems": self.errors, "warnings": self.warnings, "advice": self.advice, "machine": self.machine}
