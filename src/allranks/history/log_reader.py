"""Read the logs of a run's ranks, once or as they grow.

A log, even a single line, may be larger than memory, so it is read and printed in pieces, except as JSON. Printed
secrets are masked.
"""

import io
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from allranks.contract.report import truncated
from allranks.errors import InputError, Problem
from allranks.history import secret_values
from allranks.history.log_redaction import open_log, redacted
from allranks.history.nested import records_at
from allranks.history.records import RankRecord, RunRecord, StepRecord
from allranks.secrets import extends_over_lines, redact
from allranks.text import rank_list

LOOK = 0.2
"""Seconds between two checks of growing logs on this machine."""

FAR_LOOK = 2.0
"""Seconds between two checks of the logs of a submitted run."""

PIECE = 64 * 1024
"""Bytes of a log that are in memory at a time."""

_SHOWN_STEPS = 3

Find = Callable[[str], RunRecord]
"""Return a run by its id, with its logs up to date. Raise InputError if there is none."""
_LONG_LINE = 4096
"""Maximum bytes or characters of a line of a tail."""
_LONGEST_SEARCHED = 64 * 1024 * 1024
"""Maximum bytes in which the beginning of a long line is searched for, such as an exception with a tensor in its
message."""


def print_logs(run: RunRecord, step: str | None, rank: int | None, out: BinaryIO | None = None) -> None:
    """Print the current logs to a stream, by default standard output. Raise InputError if there is no such step or
    rank."""
    selected = chosen(run, step, rank)
    if out is None:
        _note_reused(selected)
    stream = out or sys.stdout.buffer
    LogPrinter(stream.write, secret_values.known(run)).print_new(run, selected)
    stream.flush()
    if out is None:
        _note_silent(selected)


def follow_logs(find: Find, identity: str, step: str | None, rank: int | None) -> None:
    """Print the logs, and new lines until the run has ended."""
    run = find(identity)
    printer = LogPrinter(sys.stdout.buffer.write, secret_values.known(run))
    identity = run.id  # "latest" may change meanwhile
    _note_reused(chosen(run, step, rank, wait=True))
    while True:
        printer.print_new(run, chosen(run, step, rank, wait=not run.status.ended))
        sys.stdout.buffer.flush()
        if run.status.ended:
            _note_silent(chosen(run, step, rank))
            return
        time.sleep(FAR_LOOK if run.submitted else LOOK)
        run = find(identity)


def log_entries(run: RunRecord, step: str | None, rank: int | None) -> list[dict[str, Any]]:
    """Return the logs of a run for JSON: run, step, rank, log and lines of each rank. All lines are in memory.

    run: the run that wrote the log, another one for a reused step. lines: the log as UTF-8, split as by
    `str.splitlines`, with U+FFFD for invalid bytes.
    """
    known = secret_values.known(run)
    return [
        {
            "run": owner.reused_from or run.id,
            "step": owner.name,
            "rank": record.rank,
            "log": record.log,
            "lines": _text(record.log, known).splitlines(),
        }
        for owner, ranks in chosen(run, step, rank)
        for record in ranks
    ]


def _text(log: str, known: frozenset[str]) -> str:
    return b"".join(redacted(_pieces(log, 0, _size(log)), known)).decode("utf-8", "replace")


def _note_reused(chosen: list[tuple[StepRecord, list[RankRecord]]]) -> None:
    """Print to standard error from which runs the results of steps, and therefore their logs, were reused."""
    runs: dict[str, list[str]] = {}
    for step, _ in chosen:
        if step.reused_from:
            runs.setdefault(step.reused_from, []).append(step.name)
    for run, steps in runs.items():
        names = ", ".join(steps[:_SHOWN_STEPS])
        others = f" and {len(steps) - _SHOWN_STEPS} more" if len(steps) > _SHOWN_STEPS else ""
        print(f"{names}{others}: reused from run {run}, which wrote these logs", file=sys.stderr)


def _note_silent(chosen: list[tuple[StepRecord, list[RankRecord]]]) -> None:
    """Print to standard error which ranks have written no output."""
    for step, ranks in chosen:
        silent = [rank for rank in ranks if os.path.isfile(rank.log) and not _size(rank.log)]
        if silent:
            so_far = "" if all(rank.status.ended for rank in silent) else " so far"
            print(f"{step.name}: {rank_list([rank.rank for rank in silent])} printed nothing{so_far}", file=sys.stderr)


def chosen(
    run: RunRecord, step: str | None, rank: int | None, *, wait: bool = False
) -> list[tuple[StepRecord, list[RankRecord]]]:
    """Return the requested steps and ranks. wait: whether steps and ranks that have not started may be missing"""
    steps = run.steps if step is None else records_at(run, step)
    selected = [(record, [each for each in record.ranks if rank is None or each.rank == rank]) for record in steps]
    if rank is not None and not wait and not any(ranks for _, ranks in selected):
        highest = max((each.rank for record in steps for each in record.ranks), default=None)
        found, expected = (
            ("no rank has started", "") if highest is None else ("there is no such rank", f"0 to {highest}")
        )
        where = f"run {run.id}" + (f", step {step}" if step else "")
        raise InputError(Problem(f"{where}, rank {rank}", found, expected))
    return selected


@dataclass
class _Position:
    """The position up to which a log has been read, in bytes.

    printed:  the end of the last printed line
    searched: the end of the part after `printed` that was searched for a line end without success
    """

    printed: int = 0
    searched: int = 0


@dataclass
class LogPrinter:
    """Print new lines of each log, only complete ones, so that lines of different ranks are not mixed.

    The bytes are printed as the ranks wrote them, even if they are not text.

    write: prints bytes
    known: the secrets of the run's plan
    """

    write: Callable[[bytes], object]
    known: frozenset[str] = frozenset()
    positions: dict[str, _Position] = field(default_factory=dict)

    def print_new(
        self, run: RunRecord, chosen: list[tuple[StepRecord, list[RankRecord]]], *, names: bool = False
    ) -> None:
        """Print the new lines. names: whether the lines of a single rank, too, begin with its step and number"""
        several = names or sum(len(ranks) for _, ranks in chosen) > 1
        for step, ranks in chosen:
            for rank in ranks:
                prefix = f"{step.name}:{rank.rank} | ".encode() if several else b""
                self._print_log(rank.log, prefix, complete=run.status.ended or rank.status.ended)

    def _print_log(self, log: str, prefix: bytes, *, complete: bool) -> None:
        """Print the new lines of a log. complete: whether to print a last line without a line end"""
        position = self.positions.setdefault(log, _Position())
        size = _size(log)
        end = size if complete else _end_of_last_line(log, position.searched, size)
        position.searched = max(position.searched, size)
        if end > position.printed:
            _print_lines(redacted(_pieces(log, position.printed, end), self.known), prefix, self.write)
            position.printed = end


def _print_lines(pieces: Iterable[bytes], prefix: bytes, write: Callable[[bytes], object]) -> None:
    """Print the lines in pieces of a log, each with the prefix. End the last line."""
    ended = True
    for piece in pieces:
        if ended:
            write(prefix)
        ended = piece.endswith(b"\n")
        if prefix:
            # After a line end at the end of this piece, the prefix is written with the next piece, if there is one.
            last = len(piece) - ended
            piece = piece[:last].replace(b"\n", b"\n" + prefix) + piece[last:]
        write(piece)
    if not ended:
        write(b"\n")


def _end_of_last_line(log: str, start: int, end: int) -> int:
    """Return the offset after the last line end between two offsets, or 0."""
    while start < end:
        begin = max(start, end - PIECE)
        offset = b"".join(_pieces(log, begin, end)).rfind(b"\n")
        if offset >= 0:
            return begin + offset + 1
        end = begin
    return 0


def _pieces(log: str, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes between two offsets in pieces, or fewer if the log has become shorter."""
    try:
        with open_log(log) as file:
            file.seek(start)
            while start < end and (piece := file.read(min(PIECE, end - start))):
                start += len(piece)
                yield piece
    except OSError:
        return


def _size(log: str) -> int:
    """Return the size of a log; 0 if it cannot be read, for example because its rank has not started."""
    try:
        return os.path.getsize(log)
    except OSError:
        return 0


def tail(log: str, lines: int = 20, size: int = 1 << 16) -> tuple[str, ...]:
    """Return the last lines of a log, which may be large, missing or binary. size: their maximum size in bytes

    Of a long line, only the beginning and the end are returned. A secret that began in an earlier line is masked.
    """
    try:
        with open_log(log) as file:
            start = max(0, os.fstat(file.fileno()).st_size - size)
            file.seek(start)
            data = file.read(size)
            if start and data.find(b"\n", 0, _LONG_LINE) < 0:
                data = _before_long_line(file, start, size // 4) + data
            text = data.decode("utf-8", "replace")
    except OSError:
        return ()
    if extends_over_lines(text):
        text = redact(text)
    # Split at line feeds first: at carriage returns, a progress bar would have thousands of lines.
    text = "\n".join(truncated(line, _LONG_LINE) for line in text.rstrip().split("\n")[-lines:])
    return tuple(text.splitlines()[-lines:])


def _before_long_line(file: io.FileIO, place: int, size: int) -> bytes:
    """Return at most `size` bytes that precede the line around a place in a log, and the beginning of that line."""
    start = end = place
    while start > max(place - _LONGEST_SEARCHED, 0):
        end, start = start, max(start - PIECE, 0)
        file.seek(start)
        if (found := file.read(end - start).rfind(b"\n")) >= 0:
            file.seek(max(start + found - size, 0))
            return file.read(min(size, start + found) + _LONG_LINE)
    return b""
