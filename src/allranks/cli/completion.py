"""Complete the runs and steps in a line that the user types.

A function reads little, changes nothing, and returns nothing on any error: a message would appear in the middle of the
line. Without proposals, a shell completes the names of files.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import typer

from allranks.history.selection import find
from allranks.sdk.paths import nearest

_RUNS = 50
_STEPS = 1000
_PATIENCE = 0.1
"""Seconds to wait for the engine's writes."""

Complete: TypeAlias = Callable[[typer.Context, str], list[str]]


def _silent(propose: Callable[[typer.Context, str], Iterable[str]]) -> Complete:
    """Return a function for typer that returns the proposals which begin with the incomplete word."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [text for text in dict.fromkeys(propose(ctx, incomplete)) if text.startswith(incomplete)]
        except Exception:
            return []

    # typer does not evaluate annotations that are strings.
    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str, "return": list[str]}
    return complete


@_silent
def complete_runs(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose ids of runs, the newest first, and the names of their jobs."""
    with _store(ctx) as connection:
        rows = connection.execute(
            "SELECT id, json_extract(record, '$.job_name') FROM run ORDER BY created DESC, rowid DESC LIMIT ?", (_RUNS,)
        ).fetchall()
    yield "latest"
    yield from (identity for identity, _ in rows)
    yield from (name for identity, name in rows if name and name != identity)


@_silent
def complete_steps(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose the paths of the nodes of the run that the line names already."""
    with _store(ctx) as connection:
        run = find(connection, str(ctx.params.get("identity") or "latest"), _workspace(ctx))
        rows = connection.execute("SELECT path FROM node WHERE run = ? ORDER BY position LIMIT ?", (run, _STEPS))
        yield from (path for (path,) in rows.fetchall())


def _workspace(ctx: typer.Context) -> Path:
    given = ctx.params.get("workspace") or ctx.params.get("folder")
    return Path(given) if given else nearest(Path.cwd(), ".allranks", exists=Path.is_dir) or Path()


@contextlib.contextmanager
def _store(ctx: typer.Context) -> Iterator[sqlite3.Connection]:
    """Open the store of the workspace for reading, without creating it."""
    path = (_workspace(ctx) / "allranks.db").absolute()
    # Without a journal there is no writer, so SQLite need not create files for a lock.
    immutable = "" if path.with_name(f"{path.name}-wal").exists() else "&immutable=1"
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro{immutable}", uri=True, timeout=_PATIENCE)
    with contextlib.closing(connection):
        yield connection
