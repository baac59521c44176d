"""Ask running ranks for the recordings of torch's Flight Recorder, and read those of ranks that have ended.

Only ranks that were forked from a fork server answer, including the workers of a launcher. Cold ranks do not.
"""

import json
import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from itertools import takewhile
from operator import itemgetter
from pathlib import Path

from allranks.local import stack_dumps
from allranks.local.forkserver.flight_recorder import RECORDING, REQUEST, STACK
from allranks.verdict import collectives
from allranks.verdict.collectives import Recording
from allranks.verdict.rank_stack import Frame, Stack

PATIENCE, AGAIN = 1.0, 0.5
"""Seconds for ranks to answer, and for ranks that did not answer before. An answer takes milliseconds."""

_PAUSE = 0.01


def ask(reports: Mapping[int, Path], silent: Collection[int] = ()) -> list[int]:
    """Ask the running ranks to write their recordings. Return those that do not answer: none of their threads runs.

    reports: the report files of the ranks
    silent:  the ranks that did not answer the last time
    """
    asked = {}
    for path, rank, _ in _files(reports, REQUEST):
        answer = path.with_suffix(RECORDING)
        before = _identity(answer)
        with suppress(OSError):  # no thread waits there: the rank has ended
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            asked[rank] = answer, before
    start = time.monotonic()
    while asked and time.monotonic() < start + (AGAIN if asked.keys() <= set(silent) else PATIENCE):
        asked = {rank: each for rank, each in asked.items() if _identity(each[0]) == each[1]}
        if asked:
            time.sleep(_PAUSE)
    return sorted(asked)


def read(reports: Mapping[int, Path], *, last: bool = False) -> list[Recording]:
    """Return the newest recordings of the ranks. last: whether to read only the last calls, in a third of the time"""
    found = (collectives.read(*file, last=last) for file in _files(reports, RECORDING))
    return [recording for recording in found if recording is not None]


def stacks(reports: Mapping[int, Path]) -> list[Stack]:
    """Return the stacks that the ranks have written with their last answers."""
    found = []
    for path, rank, launcher in _files(reports, STACK):
        calls = takewhile(lambda call: stack_dumps.ENGINE not in call[1], json.loads(path.read_bytes()))
        numbers = (rank, None) if launcher is None else (launcher, rank)
        found.append(Stack(numbers[0], tuple(Frame(*call) for call in calls), numbers[1]))
    return found


def remove(reports: Mapping[int, Path]) -> None:
    """Remove the files of all ranks. Call it when they have ended."""
    for suffix in (REQUEST, RECORDING, STACK):
        for path, _, _ in _files(reports, suffix):
            path.unlink(missing_ok=True)


def _files(reports: Mapping[int, Path], suffix: str) -> list[tuple[Path, int, int | None]]:
    """Return the files with a suffix, sorted by rank: for each, the rank that wrote it, and the rank whose launcher
    started that one, or None. A folder lists its files in any order."""
    by_name = {report.name: rank for rank, report in reports.items()}
    found = []
    for folder in {report.parent for report in reports.values()}:
        for name in os.listdir(folder) if folder.exists() else ():
            report, _, rank = name.removesuffix(suffix).rpartition(".")
            if name.endswith(suffix) and report in by_name and rank.isdecimal():
                found.append((folder / name, int(rank), by_name[report]))
    launched = any(rank != reporting for _, rank, reporting in found)
    found.sort(key=itemgetter(1, 2))
    return [(path, rank, reporting if launched else None) for path, rank, reporting in found]


def _identity(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return 0
