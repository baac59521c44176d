"""The interface of a launcher: its input, and the programs that the engine starts for a step."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.contract.launch import Launch
from allranks.contract.produce import processes
from allranks.local.instances.instance import InstanceKind
from allranks.local.instances.supervisor import Event, Program

LAUNCHER_FOLDER = "launcher"
"""The folder for a launcher's own files, in the folder of the step."""


@dataclass(frozen=True)
class Assignment:
    """The ranks of a step, ready to be started.

    ranks:       the program of each rank, in the order of the ranks
    kind:        the kind of the instances
    environment: the environment of the launcher's own programs, for each instance
    folder:      the folder for the launcher's own files. Every instance can read it. The launcher creates it if needed.
    log:         the log file of the launcher's own programs
    """

    launch: Launch
    ranks: tuple[Program, ...]
    kind: InstanceKind
    environment: Sequence[Mapping[str, str]]
    folder: Path
    log: Path

    def by_instance(self) -> list[list[Program]]:
        programs: list[list[Program]] = [[] for _ in self.launch.addresses]
        for process, rank in zip(processes(self.launch), self.ranks, strict=True):
            programs[process.instance_rank].append(rank)
        return programs


@dataclass(frozen=True)
class LaunchedPrograms:
    """The programs to start on each instance, and the condition for the end of the step.

    decisive:    names of the programs that the step waits for. When they have exited, the others are ended.
    linger:      seconds that the others have to exit by themselves
    events_file: the file with the start and exit events of ranks that the engine does not start itself
    """

    programs: Sequence[Sequence[Program]]
    decisive: frozenset[str]
    linger: float = 0.0
    events_file: Path | None = None


@dataclass(frozen=True)
class Launcher:
    """One way to start the ranks of a step.

    launch:   returns the programs to start. It may write files into the assignment's folder.
    program:  the program that it needs on PATH of the ranks; "" for none
    software: the software that has the program, with the version that is expected
    fix:      how to install it
    """

    launch: Callable[[Assignment], LaunchedPrograms]
    program: str = ""
    software: str = ""
    fix: str = ""


def rank_name(rank: int) -> str:
    """Return the name of a rank's program."""
    return f"rank {rank}"


def read_events(file: Path, offset: int = 0) -> tuple[list[Event], int]:
    """Return the events of an events file after an offset (in bytes), and the offset for the next call. A last line
    that is still being written is left for the next call."""
    with open(file, "rb") as stream:
        stream.seek(offset)
        whole, newline, _ = stream.read().rpartition(b"\n")
    entries = map(json.loads, whole.splitlines())
    events = [Event(entry.pop("event"), "", program=rank_name(entry.pop("rank")), **entry) for entry in entries]
    return events, offset + len(whole) + len(newline)
