"""Find a run of a workspace by its id, its name or their first characters."""

import sqlite3
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.text import when

LATEST = "latest"
_AZURE = "azure:"
"""The prefix of the name of a job on Azure ML."""

SCHEDULES = "schedules"
"""The folder in a workspace with one log for each run that a schedule has started."""

_LISTED = 5

# Conditions: the id or the job's name equals the text; one of them begins with it, or another name equals it.
_EXACT = "id = :text OR json_extract(record, '$.job_name') = :text"
_SIMILAR = (
    "substr(id, 1, length(:text)) = :text OR substr(json_extract(record, '$.job_name'), 1, length(:text)) = :text"
    " OR :text IN (json_extract(record, '$.display_name'), json_extract(record, '$.name'))"
)


def find(connection: sqlite3.Connection, text: str, folder: Path) -> str:
    """Return the id of the run that a text names; "latest" is the last one that was created, regardless of the clock.

    A complete id or job name takes precedence over the beginning of another one, and over names that several runs may
    have.

    connection: to the store of the workspace in `folder`

    Raise InputError if the text names no run, or several, which it lists.
    """
    # Most requests give a complete id, which needs no scan.
    # Without a condition, one damaged record would hide all other runs.
    conditions = ["id = :text", *(f"CASE WHEN json_valid(record) THEN {each} END" for each in (_EXACT, _SIMILAR))]
    if text.startswith(_AZURE):
        text, conditions = text.removeprefix(_AZURE), conditions[:1]
    elif text == LATEST:
        conditions = ["rowid = (SELECT max(rowid) FROM run)"]
    for condition in conditions:
        rows = connection.execute(
            "SELECT id, json_extract(record, '$.name'), json_extract(record, '$.job_name'),"
            " json_extract(record, '$.status'), created FROM run"
            f" WHERE {condition} ORDER BY rowid DESC",
            {"text": text} if ":text" in condition else {},
        ).fetchall()
        if len(rows) == 1:
            return str(rows[0][0])
        if rows:
            raise InputError(_ambiguous(text, rows))
    raise InputError(_unknown(text, folder))


def _unknown(text: str, folder: Path) -> Problem:
    log = folder / SCHEDULES / f"{text}.log"
    if Path(text).name == text and log.is_file():
        return Problem(f"run {text}", "its schedule fired, but the run could not start", fix=f"see {log}")
    expected = "a run's id, its first characters, the name of its job or pipeline, azure:JOB, or: latest"
    found = f"no such run in {folder}"
    return Problem(f"run {text}", found, expected, "`allranks runs` lists them", code="unknown-run")


def _ambiguous(text: str, rows: list[tuple[str, str, str, str, float]]) -> Problem:
    lines = [f"fits {len(rows)} runs:"]
    for identity, name, job_name, status, created in rows[:_LISTED]:
        names = dict.fromkeys(each for each in (job_name, name) if each and each != identity)
        lines.append(f"{identity}  {when(created)[:16]}  {status}  {', '.join(names)}".rstrip())
    if len(rows) > _LISTED:
        lines.append(f"… and {len(rows) - _LISTED} more")
    return Problem(f"run {text}", "\n".join(lines), fix=f"use a longer part of the id, such as: {rows[0][0]}")
