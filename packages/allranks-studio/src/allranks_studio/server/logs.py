"""Windows of logs, and a search over the logs of all ranks. A log may be larger than memory."""

import contextlib
import io
import os
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

from allranks.contract.report import truncated
from allranks.errors import InputError, Problem
from allranks.history import log_reader, secret_values
from allranks.history.log_redaction import open_log, redacted
from allranks.history.nested import records_at
from allranks.history.records import RankRecord, RunRecord
from allranks.secrets import same_length
from allranks.text import plain
from allranks_studio.server.folders import Folder

LARGEST = 1 << 20
"""Maximum bytes of a window."""
_USUAL = 1 << 16
_CONTEXT = 16 * 1024
"""Bytes before a window in which a secret may begin, such as a private key of several lines."""
_LONGEST_LINE = 4000
MOST_HITS = 1000
_PATIENCE = 5.0
"""Seconds of a search. Its answer says where to continue."""
_PIECE = 4 << 20


def log(
    folder: Folder, record: RunRecord, step: str, rank: int = 0, offset: int = -_USUAL, bytes: int = _USUAL
) -> dict[str, Any]:
    """Answer GET /api/log."""
    ((_, (found,)),) = log_reader.chosen(record, records_at(record, step)[0].name, rank)
    complete = found.status.ended or record.status.ended
    with _opened(found, folder) as file:
        total, known = os.fstat(file.fileno()).st_size, secret_values.known(record)
        return window(file, total, offset, min(max(bytes, 1), LARGEST), known, complete=complete)


def _opened(rank: RankRecord, folder: Folder) -> io.FileIO:
    """Open the log of a rank. Raise InputError if it is not a file of the folder or of its workspace."""
    if not folder.owns(os.path.realpath(rank.log)):
        raise InputError(Problem(rank.log, "it is not in the folder", "a log of the workspace"))
    return open_log(rank.log)


def window(
    file: BinaryIO | io.FileIO, total: int, offset: int, size: int, known: frozenset[str], *, complete: bool
) -> dict[str, Any]:
    """Return the whole lines of a window: api.ts's LogPart. Lines up to 64 kB are not cut.

    total:    bytes of the log
    offset:   the first line begins here or later; a negative one counts from the end
    known:    secrets of the run
    complete: whether the last line has ended, also without a line end
    """
    start = max(total + offset, 0) if offset < 0 else min(offset, total)
    begin, masked = max(start - _CONTEXT, 0), b""
    while True:
        file.seek(begin)
        raw = file.read(start - begin + size)
        is_end = begin + len(raw) >= total
        # Each secret keeps its length, so the offsets stay right. Without `complete`, the data ends between two words.
        masked = b"".join(redacted([raw], known, mask=same_length, complete=is_end and complete))
        if len(masked) > start - begin or is_end or size > LARGEST:
            break
        size *= 4
    first, end = start - begin, max(len(masked), start - begin)
    if start and raw[first - 1 : first] != b"\n" and (line_end := raw.find(b"\n", first, end)) >= 0:
        first = line_end + 1
    return {"offset": begin + first, "end": begin + end, "size": total, "text": _text(masked[first:])}


def _text(data: bytes) -> str:
    """Return the lines as text that is harmless on a screen: without control characters and reordering marks."""
    lines = plain(data.decode("utf-8", "replace")).split("\n")
    return "\n".join(truncated(line, _LONGEST_LINE) for line in lines)


def search(folder: Folder, record: RunRecord, query: str, step: str = "") -> dict[str, Any]:
    """Answer GET /api/log/search: lines with a text, in any case, in the logs of a step or of all steps."""
    if not 0 < len(query) <= 200:
        raise InputError(Problem("parameter query", f"{len(query)} characters", "1 to 200"))
    chosen, hits = log_reader.chosen(record, step or None, None), list[dict[str, Any]]()
    known, until = secret_values.known(record), time.monotonic() + _PATIENCE
    for each, rank in ((each, rank) for each, ranks in chosen for rank in ranks):
        # A rank that has not started has no log.
        with contextlib.suppress(OSError, InputError), _opened(rank, folder) as file:
            for offset, line in islice(_lines_with(file, query.encode(), until), MOST_HITS - len(hits)):
                text = _text(b"".join(redacted([line], known)).rstrip(b"\r\n"))
                hits.append({"step": each.name, "rank": rank.rank, "offset": offset, "text": text})
    return {"hits": hits, "complete": len(hits) < MOST_HITS and time.monotonic() < until}


def _lines_with(file: io.FileIO, query: bytes, until: float) -> Iterator[tuple[int, bytes]]:
    """Yield the offset of each line with a text, in any case, and the part of the line around it, until a moment of the
    monotonic clock."""
    query, start = query.lower(), 0
    lines = io.BufferedReader(file)
    while time.monotonic() < until and (piece := lines.read(_PIECE) + lines.readline(_PIECE)):
        place = start
        for line in piece.split(b"\n") if query in piece.lower() else ():
            if (match := line.lower().find(query)) >= 0:
                yield place, line[max(match - _LONGEST_LINE, 0) : match + _LONGEST_LINE]
            place += len(line) + 1
        start += len(piece)
