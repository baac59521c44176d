"""The differences between what two platforms give the processes of the same job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allranks.azure.verification.anonymous import described
from allranks.azure.verification.kinds import KINDS
from allranks.azure.verification.launch_records import READABLE, Fact, Facts, facts

ABSENT = "(absent)"
"""The value of a fact that one of the two platforms does not have."""


@dataclass(frozen=True)
class Compared:
    """One thing that both platforms, or one of them, gave some ranks.

    launch:       the launch, such as pytorch
    kind:         a key of KINDS
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

    @property
    def is_failure(self) -> bool:
        """Whether this is a difference in what the platform decides."""
        return self.differs and KINDS[self.kind].is_platform


def compare(
    launch: str, local: Sequence[Mapping[str, Any]], azure: Sequence[Mapping[str, Any]]
) -> tuple[Compared, ...]:
    """Compare the records of a job's processes, which `launch_records.read` returns, the important kinds first."""
    found: dict[tuple[Fact, str, str], list[int]] = {}
    here, there = facts(local), facts(azure)
    for rank in sorted(here.keys() & there.keys()):
        mine, theirs = here[rank], there[rank]
        for fact in sorted(_facts(mine, theirs)):
            found.setdefault((fact, *_values(mine, theirs, fact)), []).append(rank)
    compared = [
        Compared(launch, fact.kind, fact.name, mine, theirs, tuple(ranks))
        for (fact, mine, theirs), ranks in found.items()
    ]
    ranks = Compared(launch, "ranks", "ranks of the processes", _ranks(local), _ranks(azure), tuple(sorted(here)))
    order = list(KINDS)
    return tuple(sorted((ranks, *compared), key=lambda each: order.index(each.kind)))


def _facts(mine: Facts, theirs: Facts) -> set[Fact]:
    """Return the facts of both. If one side has no rank, that is one difference and not one for each of its parts."""
    found = mine.keys() | theirs.keys()
    if mine[READABLE] != theirs[READABLE]:
        return {fact for fact in found if fact.kind != READABLE.kind or fact == READABLE}
    return set(found)


def _values(mine: Facts, theirs: Facts, fact: Fact) -> tuple[str, str]:
    local, azure = mine.get(fact, ABSENT), theirs.get(fact, ABSENT)
    # The value of a variable that is not known may identify the workspace in a way that is not known either.
    return local, described(azure) if local == ABSENT and fact.kind == "variable" else azure


def _ranks(records: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(record["rank"]) for record in records)
