"""A rule of `allranks check`: its code, its level, and the source of what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from types import ModuleType

from allranks.errors import Problem


class Level(Enum):
    """How serious a finding is."""

    ERROR = "error"
    """azure-ai-ml or Azure ML refuses it, or the designer's form cannot take what it has."""

    WARNING = "warning"
    """They take it, and it will probably do something else than was meant."""

    ADVICE = "advice"
    """It would be easier to use in the designer. The style of this project, which others need not share."""

    MACHINE = "this machine"
    """Only this machine lacks something, such as a package."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    code:   the name by which a comment ignores it: ``# allranks: ignore CODE``
    what:   what it finds
    source: the document, the issue or the file of azure-ai-ml that says so. An error always has one
    fix:    what to do
    """

    code: str
    level: Level
    what: str
    source: str
    fix: str

    def problem(self, where: str, found: str, expected: str = "", fix: str = "") -> Problem:
        """Return a finding of this rule. fix: what to do in this place; by default the rule's fix."""
        return Problem(where, found, expected, fix or self.fix, rule=self.code)

    def mark(self, problems: Iterable[Problem]) -> Iterator[Problem]:
        """Yield the problems as findings of this rule, except those of another one."""
        return (problem if problem.rule else replace(problem, rule=self.code) for problem in problems)


@dataclass(frozen=True)
class Findings:
    """What a check has found, by its level."""

    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    advice: tuple[Problem, ...] = ()
    machine: tuple[Problem, ...] = ()

    @classmethod
    def of(
        cls, problems: Iterable[Problem], rules: Iterable[Rule], remaining: Callable[[list[Problem]], Iterable[Problem]]
    ) -> Findings:
        """Return problems by the level of their rule, each in its order.

        rules:     the rules of all problems
        remaining: returns the problems that no comment ignores; errors cannot be ignored
        """
        levels = {rule.code: rule.level for rule in rules}
        of_level: dict[Level, list[Problem]] = {level: [] for level in Level}
        for problem in problems:
            of_level[levels[problem.rule]].append(problem)
        errors = of_level.pop(Level.ERROR)
        return cls(tuple(errors), *(tuple(remaining(found)) for found in of_level.values()))


def rules_in(modules: Iterable[ModuleType]) -> tuple[Rule, ...]:
    """Return the rules that are defined in these modules, in the order of their definition."""
    rules = (value for module in modules for value in vars(module).values() if isinstance(value, Rule))
    return tuple({rule.code: rule for rule in rules}.values())
