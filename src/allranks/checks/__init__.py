"""The rules of `allranks check`, in tables by what they look at: a plan, a component, an environment.

A rule is a row of rules.csv. The function that applies it is a row of a table here, with the rule's code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from allranks.errors import Level, Problem, Rule

Table = Iterable[tuple[Callable[..., Iterable[Problem]], str]]
"""Functions that check a subject. Each has the code of the rule for its findings that name no other rule."""


def apply(table: Table, *subject: object) -> Iterator[Problem]:
    """Yield what the functions of a table find in a subject."""
    for function, code in table:
        yield from Rule.named(code).mark(function(*subject))


@dataclass(frozen=True)
class Findings:
    """The findings of a check."""

    found: tuple[Problem, ...] = ()

    def of(self, level: Level) -> tuple[Problem, ...]:
        """Return the findings of a level, each once."""
        return tuple(dict.fromkeys(problem for problem in self.found if problem.level is level))

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Findings that prevent the use of the input."""
        return self.of(Level.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Findings of inputs that can be used but probably do not do what was intended."""
        return self.of(Level.WARNING)

    @property
    def advice(self) -> tuple[Problem, ...]:
        """Suggestions in the style of this project."""
        return self.of(Level.ADVICE)

    @property
    def machine(self) -> tuple[Problem, ...]:
        """Findings about this machine, such as a missing package."""
        return self.of(Level.MACHINE)

    def strict(self) -> Findings:
        """Return the findings with warnings and advice as errors."""
        raised = (Level.WARNING, Level.ADVICE)
        found = (replace(problem, level=Level.ERROR) if problem.level in raised else problem for problem in self.found)
        return Findings(tuple(found))

    def by_kind(self) -> dict[str, tuple[Problem, ...]]:
        """Return the findings as `--json` prints them."""
        return {"problems": self.errors, "warnings": self.warnings, "advice": self.advice, "machine": self.machine}
