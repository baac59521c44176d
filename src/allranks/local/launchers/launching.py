"""What a launcher is asked, and what it answers: the processes that the engine starts for a step, and which of them end
it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from allranks.contract.launch import Launch
from allranks.contract.produce import processes
from allranks.errors import Problem
from allranks.local.instances.kinds import InstanceKind
from allranks.local.instances.supervisor import Program


@dataclass(frozen=True)
class Assignment:
    """The ranks of a step, ready to be started.

    ranks:       what each rank runs, in the order of the ranks
    kind:        of the instances
    environment: for each instance, what a program of the launcher's own is given
    folder:      for the launcher's own files, which makes it where it has any; every instance sees it
    log:         where the launcher's own programs print
    """

    launch: Launch
    ranks: tuple[Program, ...]
    kind: InstanceKind
    environment: Sequence[Mapping[str, str]]
    folder: Path
    log: Path

    def by_instance(self) -> list[list[Program]]:
        """Return the ranks of each instance."""
        found: list[list[Program]] = [[] for _ in self.launch.addresses]
        for process, rank in zip(processes(self.launch), self.ranks, strict=True):
            found[process.instance_rank].append(rank)
        return found


@dataclass(frozen=True)
class Launching:
    """What the engine starts on each instance, and when the step has ended.

    decisive: names of the programs whose end is the step's; the others are ended when these are done
    linger:   seconds that the others have to end by themselves
    events_file:  the file in which ranks that the engine does not start itself tell of their start and end
    """

    programs: Sequence[Sequence[Program]]
    decisive: frozenset[str]
    linger: float = 0.0
    events_file: Path | None = None


class Launcher(Protocol):
    """One way to start the ranks of a step."""

    def missing(self, path: str) -> Problem | None:
        """Return what this machine lacks. path: where a rank looks for programs. `where` is a key of the step."""

    def launch(self, assignment: Assignment) -> Launching:
        """Return what to start. May write files into the assignment's folder."""
