"""Errors in a user's input: the place, what was found, what was expected, and the fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Problem:
    """One mistake in the user's input.

    where:    the place, as precisely as it is known: "step train, key instance_count (pipeline.py:31)"
    found:    what is there
    expected: what is allowed there
    fix:      what to do, as a sentence or a command
    code:     the section of docs/troubleshooting.md that explains it; "" if there is none
    rule:     the rule of docs/checks.md that found it, which a comment can ignore; "" if there is none
    """

    where: str
    found: str
    expected: str = ""
    fix: str = ""
    # What is wrong does not depend on where it is explained.
    code: str = field(default="", compare=False)
    rule: str = field(default="", compare=False)

    @property
    def more(self) -> str:
        """The command that explains the problem; "" if there is no explanation."""
        return f"allranks explain {self.code}" if self.code else ""

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.found}" if self.where else self.found]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        if self.more:
            lines.append(f"  more: {self.more}")
        return "\n".join(lines)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", *, cutoff: float = 0.6) -> str:
    """Return the fix for an unknown name: ``did you mean lr?``. otherwise: the fix if no known name is similar"""
    from difflib import get_close_matches  # of no use to correct input

    near = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}?" if near else otherwise


class InputError(Exception):
    """The user's input cannot be used.

    Nothing was started or changed. The command exits with code 2.
    """

    def __init__(self, *problems: Problem) -> None:
        self.problems = tuple(dict.fromkeys(problems))  # several steps may have the same one
        super().__init__("\n".join(str(problem) for problem in problems))

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> InputError:
        return cls(*problems)
