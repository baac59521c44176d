"""Reads the logs of a run's ranks, once or as they grow."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from allranks.errors import InputError, Problem
from allranks.runs.nested import records_at
from allranks.runs.records import RankRecord, RunRecord, StepRecord

LOOK = 0.2
"""Seconds between two looks at logs that grow on this machine."""

FAR_LOOK = 2.0
"""And at those of a submitted run."""

Find = Callable[[str], RunRecord]
"""Finds a run by its id, with its logs up to date. Raises InputError where there is none."""


def print_logs(find: Find, identity: str, step: str | None, rank: int | None) -> None:
    """Prints the logs as they are now. Raises InputError where there is no such run, step or rank."""
    _Printer().print_new(_chosen(find(identity), step, rank))


def follow_logs(find: Find, identity: str, step: str | None, rank: int | None) -> None:
    """Prints the logs, and what is added to them, until the run has ended."""
    printer = _Printer()
    run = find(identity)
    identity = run.id  # "latest" must not become another run on the way
    while True:
        printer.print_new(_chosen(run, step, rank, wait=not run.status.ended))
        if run.status.ended:
            printer.print_rest()
            return
        time.sleep(FAR_LOOK if run.submitted else LOOK)
        run = find(identity)


def logs_json(find: Find, identity: str, step: str | None, rank: int | None) -> str:
    """The logs as JSON: a list of {step, rank, log, lines}."""
    chosen = _chosen(find(identity), step, rank)
    found = [
        {
            "step": owner.name,
            "rank": one.rank,
            "log": one.log,
            "lines": _read(one.log).decode("utf-8", "replace").splitlines(),
        }
        for owner, ranks in chosen
        for one in ranks
    ]
    return json.dumps(found, indent=2)


def _chosen(
    run: RunRecord, step: str | None, rank: int | None, *, wait: bool = False
) -> list[tuple[StepRecord, list[RankRecord]]]:
    """The steps and ranks that are asked for. wait: whether those that have not started yet may be missing."""
    chosen = run.steps if step is None else records_at(run, step)
    found = [(record, [one for one in record.ranks if rank is None or one.rank == rank]) for record in chosen]
    if rank is not None and not wait and not any(ranks for _, ranks in found):
        most = max((one.rank for record in chosen for one in record.ranks), default=None)
        expected = f"0 to {most}" if most is not None else ""
        where = f"run {run.id}" + (f", step {step}" if step else "")
        raise InputError(
            Problem(f"{where}, rank {rank}", "there is no such rank" if expected else "no rank has started", expected)
        )
    return found


@dataclass
class _Printer:
    """Prints what is new in each log, whole lines only, so that ranks do not cut into each other.

    Bytes as the ranks wrote them: a log need not be text.
    """

    read: dict[str, int] = field(default_factory=dict)
    rest: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)

    def print_new(self, chosen: list[tuple[StepRecord, list[RankRecord]]]) -> None:
        several = sum(len(ranks) for _, ranks in chosen) > 1
        for step, ranks in chosen:
            for rank in ranks:
                prefix = f"{step.name}:{rank.rank} | ".encode() if several else b""
                for line in self._lines(rank.log, prefix):
                    _write(prefix, line)
        self.flush_rest(chosen)
        sys.stdout.buffer.flush()

    def flush_rest(self, chosen: list[tuple[StepRecord, list[RankRecord]]]) -> None:
        """A last line without an end is complete once its rank has ended."""
        for _, ranks in chosen:
            for rank in ranks:
                if rank.status.ended and rank.log in self.rest:
                    _write(*self.rest.pop(rank.log))

    def print_rest(self) -> None:
        for prefix, line in self.rest.values():
            _write(prefix, line)
        self.rest.clear()
        sys.stdout.buffer.flush()

    def _lines(self, log: str, prefix: bytes) -> Iterator[bytes]:
        new = _read(log, self.read.get(log, 0))
        if not new:
            return
        self.read[log] = self.read.get(log, 0) + len(new)
        started = self.rest.pop(log, (b"", b""))[1]
        *lines, last = (started + new).split(b"\n")
        yield from lines
        if last:
            self.rest[log] = (prefix, last)


def _write(prefix: bytes, line: bytes) -> None:
    sys.stdout.buffer.write(prefix + line + b"\n")


def _read(log: str, offset: int = 0) -> bytes:
    try:
        with open(log, "rb") as file:
            file.seek(offset)
            return file.read()
    except OSError:
        return b""
