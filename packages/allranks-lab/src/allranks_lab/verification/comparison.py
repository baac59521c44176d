"""The differences between two platforms, as the processes of the same job see them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allranks_lab.verification.anonymous import describe
from allranks_lab.verification.launch_records import READABLE, Fact, Facts, facts


@dataclass(frozen=True)
class Kind:
    """A kind of fact.

    title:       its heading in the report
    meaning:     the effect of a difference for the user of a job
    is_platform: whether the platform decides it; else the image or the machine does, and a difference is not a failure
    """

    title: str
    meaning: str
    is_platform: bool = True


KINDS = {
    "ranks": Kind(
        "Number of processes",
        "Azure ML starts other processes than the local engine. The world size of a job differs from the local one.",
    ),
    "rank": Kind(
        "Ranks, as a program reads them",
        "The runtime reads another rank or layout. Collectives can hang, or each instance trains alone.",
    ),
    "variable": Kind(
        "Variables",
        "A program that reads the variable behaves differently. One that is absent on Azure ML need not be emulated; a "
        "program that needs one that is absent locally cannot be tried locally.",
    ),
    "argument": Kind("Arguments", "The command's template or its shell passes other arguments to a program."),
    "instance": Kind(
        "Names of instances", "A program that connects to another instance by this name or address gets another result."
    ),
    "path": Kind("Paths", "A program finds another kind of path, or its write access differs."),
    "mount": Kind(
        "Mounts", "The file system differs in speed, space, or supported operations (links, locks, renaming)."
    ),
    "user": Kind("User", "Files belong to another user, or a program that needs root or a home fails."),
    "limit": Kind("Limits", "A program that needs many files, locked memory (RDMA) or a large stack can fail."),
    "process": Kind("Process", "Signals, new files' permissions or standard input behave differently."),
    "image": Kind(
        "Image", "The image has another version than this machine. Azure ML does not decide it.", is_platform=False
    ),
    "machine": Kind("Machine", "The instances are other machines than this one.", is_platform=False),
}
"""Every kind by its name in `Fact`, the most important first."""


ABSENT = "(absent)"
"""The value of a fact that exists on one of the platforms only."""


@dataclass(frozen=True)
class FactComparison:
    """The comparison of one fact of some ranks on both platforms.

    launch:       the launch, such as pytorch
    kind:         a key of KINDS
    local, azure: the values on the local engine and on Azure ML, with placeholders for ids, addresses and folders
    ranks:        the ranks with this fact
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
        """Whether it is a difference of facts that the platform decides."""
        return self.differs and KINDS[self.kind].is_platform


def compare(
    launch: str, local: Sequence[Mapping[str, Any]], azure: Sequence[Mapping[str, Any]]
) -> tuple[FactComparison, ...]:
    """Compare the records of a job's processes, which `launch_records.read` returns, the important kinds first."""
    found: dict[tuple[Fact, str, str], list[int]] = {}
    here, there = facts(local), facts(azure)
    for rank in sorted(here.keys() & there.keys()):
        mine, theirs = here[rank], there[rank]
        for fact in sorted(_facts(mine, theirs)):
            found.setdefault((fact, *_values(mine, theirs, fact)), []).append(rank)
    compared = [
        FactComparison(launch, fact.kind, fact.name, mine, theirs, tuple(ranks))
        for (fact, mine, theirs), ranks in found.items()
    ]
    ranks = FactComparison(launch, "ranks", "ranks of the processes", _ranks(local), _ranks(azure), tuple(sorted(here)))
    order = list(KINDS)
    return tuple(sorted((ranks, *compared), key=lambda each: order.index(each.kind)))


def group_equal(compared: Iterable[FactComparison]) -> dict[FactComparison, list[FactComparison]]:
    """Group the comparisons that are equal under several launches, by the first of them."""
    groups: dict[tuple[str, ...], list[FactComparison]] = {}
    for each in compared:
        groups.setdefault((each.kind, each.name, each.local, each.azure), []).append(each)
    return {group[0]: group for group in groups.values()}


def _facts(mine: Facts, theirs: Facts) -> set[Fact]:
    """Return the facts of both. If one side has no rank, that is one difference and not one for each of its parts."""
    found = mine.keys() | theirs.keys()
    if mine[READABLE] != theirs[READABLE]:
        return {fact for fact in found if fact.kind != READABLE.kind or fact == READABLE}
    return set(found)


def _values(mine: Facts, theirs: Facts, fact: Fact) -> tuple[str, str]:
    local, azure = mine.get(fact, ABSENT), theirs.get(fact, ABSENT)
    # The value of a variable that is not known may identify the workspace in a way that is not known either.
    return local, describe(azure) if local == ABSENT and fact.kind == "variable" else azure


def _ranks(records: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(record["rank"]) for record in records)
