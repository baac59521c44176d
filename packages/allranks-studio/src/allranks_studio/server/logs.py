"""Windows of logs, and a search over the logs of all ranks. A log may be larger than memory."""

import io
import os
import re
import time
from collections.abc import Iterator
from typing import Any

from allranks.contract.report import truncated
from allranks.errors import InputError, Problem
from allranks.history import log_reader, secret_values, stored
from allranks.history.log_redaction import open_log, redacted
from allranks.history.nested import records_at
from allranks.history.records import RankRecord, RunRecord
from allranks.secrets import same_length
from allranks.text import plain
from allranks_studio.server.answers import Call
from allranks_studio.server.folders import Folder

LARGEST = 1 << 20
"""Maximum bytes of a window."""
_CONTEXT = 16 * 1024
"""Bytes before a window in which a secret may begin, such as a private key of several lines."""
_LONGEST_LINE = 4000
MOST_HITS = 1000
_PATIENCE = 5.0
"""Seconds of a search. Its answer says where to continue."""
_PIECE = 4 << 20


def log(call: Call) -> dict[str, Any]:
    """Answer GET /api/log."""
    folder = call.folder
    record = stored.run(folder.workspace, call.text("run"), curves=False)
    step, number = call.text("step"), call.whole("rank", 0, 0, 1 << 31)
    size = call.whole("bytes", 1 << 16, 1, LARGEST)
    ((_, (rank,)),) = log_reader.chosen(record, records_at(record, step)[0].name, number)
    with _opened(rank, folder) as file:
        complete = rank.status.ended or record.status.ended
        return _window(file, call.whole("offset", -size, -(1 << 62), 1 << 62), size, record, complete)


def _opened(rank: RankRecord, folder: Folder) -> io.FileIO:
    """Open the log of a rank. Raise InputError if it is not a file of the folder or of its workspace."""
    if not folder.owns(os.path.realpath(rank.log)):
        raise InputError(Problem(rank.log, "it is not in the folder", "a log of the workspace"))
    return open_log(rank.log)


def _window(file: io.FileIO, offset: int, size: int, record: RunRecord, complete: bool) -> dict[str, Any]:
    """Return the whole lines of a window. Its first line begins at the offset or after it; a line that is longer than
    the window is cut."""
    total = os.fstat(file.fileno()).st_size
    start = max(total + offset, 0) if offset < 0 else min(offset, total)
    begin = max(start - _CONTEXT, 0)
    file.seek(begin)
    raw = file.read(start - begin + size)
    if begin + len(raw) < total or not complete:  # the last line may continue
        raw = (
            raw[: raw.rfind(b"\n", start - begin) + 1] or raw
            if begin + len(raw) < total
            else _whole_lines(raw, start - begin)
        )
    masked = b"".join(redacted([raw], secret_values.known(record), mask=same_length))
    first = start - begin
    if start and raw[first - 1 : first] != b"\n" and (line_end := raw.find(b"\n", first)) >= 0:
        first = line_end + 1
    return {"offset": begin + first, "end": begin + len(raw), "size": total, "text": _text(masked[first:])}


def _whole_lines(raw: bytes, start: int) -> bytes:
    """Return the bytes without an unfinished last line. start: is kept in any case"""
    return raw[: max(raw.rfind(b"\n", start) + 1, start)]


def _text(data: bytes) -> str:
    """Return the lines as text that is harmless on a screen: without control characters and reordering marks."""
    lines = plain(data.decode("utf-8", "replace")).split("\n")
    return "\n".join(truncated(line, _LONGEST_LINE) for line in lines)


def search(call: Call) -> dict[str, Any]:
    """Answer GET /api/log/search: lines with a text, in any case, in the logs of a step or of all steps."""
    folder, query = call.folder, call.text("query")
    record = stored.run(folder.workspace, call.text("run"), curves=False)
    if not 0 < len(query) <= 200:
        raise InputError(Problem("parameter query", f"{len(query)} characters", "1 to 200"))
    pattern = re.compile(re.escape(query.encode()), re.IGNORECASE)
    known, until = secret_values.known(record), time.monotonic() + _PATIENCE
    hits: list[dict[str, Any]] = []
    for step, ranks in log_reader.chosen(record, call.text("step", "") or None, None):
        for rank in ranks:
            try:
                with _opened(rank, folder) as file:
                    for offset, line in _lines_with(file, pattern, until):
                        text = _text(b"".join(redacted([line], known)).rstrip(b"\r\n"))
                        hits.append({"step": step.name, "rank": rank.rank, "offset": offset, "text": text})
                        if len(hits) >= MOST_HITS:
                            return {"hits": hits, "complete": False}
            except (OSError, InputError):
                continue  # a rank that has not started has no log
            if time.monotonic() > until:
                return {"hits": hits, "complete": False}
    return {"hits": hits, "complete": True}


def _lines_with(file: io.FileIO, pattern: re.Pattern[bytes], until: float) -> Iterator[tuple[int, bytes]]:
    """Yield the offset and the text of each line with a match, until a moment of the monotonic clock."""
    start, rest = 0, b""
    while time.monotonic() < until and (piece := file.read(_PIECE)):
        data = rest + piece
        end = data.rfind(b"\n") + 1 or (len(data) if len(data) > _PIECE else 0)
        place = 0
        while place < end and (match := pattern.search(data, place, end)):
            first = data.rfind(b"\n", 0, match.start()) + 1
            place = (data.find(b"\n", match.end(), end) + 1) or end
            yield (
                start + first,
                data[max(first, match.start() - _LONGEST_LINE) : min(place, match.end() + _LONGEST_LINE)],
            )
        rest, start = data[end:], start + end
    if rest and (match := pattern.search(rest)):
        yield start, rest[: match.end() + _LONGEST_LINE]
