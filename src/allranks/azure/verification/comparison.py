"""The differences between what two platforms give the processes of the same job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allranks.azure.verification.launch_records import Fact, Facts, facts

ABSENT = "(absent)"
"""The value of a fact that one of the two platforms does not have."""


@dataclass(frozen=True)
class Compared:
    """One thing that both platforms, or one of them, gave some ranks.

    launch:       the distribution, such as pytorch
    local, azure: what the local engine and Azure ML gave, with placeholders for ids, addresses and folders
    ranks:        those for which this is so
    """

    launch: str
    kind: str
    name: str
    local: str
    azure: str
    ranks: tuple[int, ...]

    @property
    def differs(self) -> bool:
        return self.local != self.azure


def compare(
    launch: str, local: Sequence[Mapping[str, Any]], azure: Sequence[Mapping[str, Any]]
) -> tuple[Compared, ...]:
    """Compare the records of a job's ranks, which `launch_records.read` returns. Differences come first."""
    found: dict[tuple[Fact, str, str], list[int]] = {}
    pairs = list(zip(facts(local), facts(azure), strict=False))
    for rank, (mine, theirs) in enumerate(pairs):
        for fact in sorted(mine.keys() | theirs.keys()):
            values = _value(mine, fact), _value(theirs, fact)
            found.setdefault((fact, *values), []).append(rank)
    compared = [
        Compared(launch, fact.kind, fact.name, mine, theirs, tuple(ranks))
        for (fact, mine, theirs), ranks in found.items()
    ]
    count = Compared(launch, "ranks", "count", str(len(local)), str(len(azure)), tuple(range(len(pairs))))
    return tuple(sorted((count, *compared), key=lambda each: not each.differs))


def _value(facts: Facts, fact: Fact) -> str:
    return facts.get(fact, ABSENT)
