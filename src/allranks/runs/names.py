"""Find a run by its id or its first characters, the name of its job or its pipeline, or its display name."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.runs.formatting import when

LATEST = "latest"
SCHEDULES = "schedules"
"""The folder in a workspace with one log per run that a schedule has started."""

_LISTED = 5
"""Maximum number of candidates that a message lists."""

_ROWS = (
    "SELECT id, json_extract(record, '$.name'), json_extract(record, '$.job_name'),"
    " json_extract(record, '$.status'), created FROM run"
)
_EXACT = "id = :text OR json_extract(record, '$.job_name') = :text"
_SIMILAR = (
    "substr(id, 1, length(:text)) = :text"
    " OR substr(json_extract(record, '$.job_name'), 1, length(:text)) = :text"
    " OR json_extract(record, '$.display_name') = :text"
    " OR json_extract(record, '$.name') = :text"
)
_NEWEST_FIRST = "ORDER BY created DESC, rowid DESC"


class UnknownRunError(InputError):
    """A workspace has no run of that name."""


@dataclass(frozen=True)
class _Candidate:
    id: str
    name: str
    job_name: str
    status: str
    created: float

    def __str__(self) -> str:
        names = dict.fromkeys(name for name in (self.job_name, self.name) if name and name != self.id)
        return f"{self.id}  {when(self.created)[:16]}  {self.status}  {', '.join(names)}".rstrip()


def find(connection: sqlite3.Connection, text: str, folder: Path) -> str:
    """Return the id of the run that a text names; "latest" is the newest. Raise UnknownRunError if it names none, and
    InputError, which lists the candidates, if it names several.

    A complete id or name of a job takes precedence over the beginning of another one, and over names that several runs
    may have.

    connection: to the store of the workspace in `folder`
    """
    if text == LATEST:
        candidates = _select(connection, f"{_NEWEST_FIRST} LIMIT 1", text)
    else:
        # Most requests give a complete id, which needs no scan.
        candidates = (
            _select(connection, "WHERE id = :text", text)
            or _select(connection, f"WHERE {_EXACT} {_NEWEST_FIRST}", text)
            or _select(connection, f"WHERE {_SIMILAR} {_NEWEST_FIRST}", text)
        )
    if len(candidates) == 1:
        return candidates[0].id
    if candidates:
        raise InputError(_ambiguous(text, candidates))
    raise UnknownRunError(_unknown(text, folder))


def _unknown(text: str, folder: Path) -> Problem:
    log = folder / SCHEDULES / f"{text}.log"
    if Path(text).name == text and log.is_file():
        return Problem(f"run {text}", "its schedule fired, but the run could not start", fix=f"see {log}")
    expected = "a run's id, its first characters, the name of its job or pipeline, or: latest"
    found = f"there is no such run in {folder}"
    return Problem(f"run {text}", found, expected, "`allranks runs` lists them", code="unknown-run")


def _ambiguous(text: str, candidates: list[_Candidate]) -> Problem:
    listed = [str(candidate) for candidate in candidates[:_LISTED]]
    listed += [f"… and {len(candidates) - _LISTED} more"] if len(candidates) > _LISTED else []
    return Problem(
        f"run {text}",
        "\n".join([f"fits {len(candidates)} runs:", *listed]),
        fix=f"give more of the id, such as: {candidates[0].id}",
    )


def _select(connection: sqlite3.Connection, condition: str, text: str) -> list[_Candidate]:
    rows = connection.execute(f"{_ROWS} {condition}", {"text": text} if ":text" in condition else {})
    return [
        _Candidate(identity, name or "", job_name or "", status or "", created)
        for identity, name, job_name, status, created in rows
    ]
