"""What the shell completes: runs, steps, files with pipelines, components and environments.

Each function reads little, changes nothing, and returns nothing if anything is wrong: an error would end up in the
middle of the line that the user types. With nothing to propose, a shell completes the names of files.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import typer

from allranks.history.selection import find
from allranks.sdk.paths import nearest

if TYPE_CHECKING:
    import sqlite3

_RUNS = 50
"""Maximum number of runs that are proposed, the newest first."""
_STEPS = 1000
_FILES = 500
"""Maximum number of files that are looked at."""
_BEGINNING = 64 * 1024
"""Bytes at the beginning of a file that tell whether it describes a job."""
_PATIENCE = 0.1
"""Seconds to wait for the engine's writes."""

_YAML = (".yml", ".yaml")
_JOB_IN_YAML = re.compile(rb"^(?:jobs|command|type)\s*:", re.MULTILINE)
_COMPONENT_IN_YAML = re.compile(rb"^(?:version|is_deterministic)\s*:|^\$schema:.*[cC]omponent", re.MULTILINE)
_NAME_IN_YAML = re.compile(r"^name:\s*[\"']?([\w.-]+)", re.MULTILINE)
_NAME_IN_PYTHON = re.compile(r"command_component\(\s*name\s*=\s*[\"']([\w.-]+)[\"']")

Complete: TypeAlias = Callable[[typer.Context, str], list[str]]


def _silent(propose: Callable[[typer.Context, str], Iterable[str]]) -> Complete:
    """Return a function for typer that returns the proposals which begin with the incomplete word."""

    @functools.wraps(propose)
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [text for text in dict.fromkeys(propose(ctx, incomplete)) if text.startswith(incomplete)]
        except Exception:
            return []

    # typer reads the annotations of this function, not those of the wrapped one.
    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str, "return": list[str]}
    del complete.__wrapped__
    return complete


@_silent
def runs(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose ids of runs, the newest first, and the names of their jobs."""
    with _store(ctx) as connection:
        rows = connection.execute(
            "SELECT id, json_extract(record, '$.job_name') FROM run ORDER BY created DESC, rowid DESC LIMIT ?", (_RUNS,)
        ).fetchall()
    yield "latest"
    yield from (identity for identity, _ in rows)
    yield from (name for identity, name in rows if name and name != identity)


@_silent
def steps(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose the paths of the nodes of the run that the line names already."""
    place = _workspace(ctx)
    with _store(ctx) as connection:
        run = find(connection, str(ctx.params.get("identity") or "latest"), place)
        rows = connection.execute("SELECT path FROM node WHERE run = ? ORDER BY position LIMIT ?", (run, _STEPS))
        yield from (path for (path,) in rows.fetchall())


@_silent
def pipeline_files(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose the files with a pipeline or a job in the folder that the word names, and in `pipelines` below it."""
    start = os.path.dirname(incomplete)
    for folder in (start, os.path.join(start, "pipelines")):
        for name in sorted(os.listdir(folder or "."))[:_FILES] if os.path.isdir(folder or ".") else ():
            path = os.path.join(folder, name)
            if path.startswith(incomplete) and _describes_job(Path(path)):
                yield path


@_silent
def components(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose the names of the components of the project, and of its environments."""
    given = ctx.params.get("components")
    folder = Path(given) if given else nearest(Path.cwd(), "components", exists=Path.is_dir)
    for spec in sorted(folder.rglob("component.*"))[:_FILES] if folder else ():
        pattern = _NAME_IN_PYTHON if spec.suffix == ".py" else _NAME_IN_YAML
        yield from pattern.findall(spec.read_text(encoding="utf-8"))
    yield from _environments(None)


@_silent
def shipped_components(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose the names of the library's components."""
    from allranks.catalog import shipped_specs

    yield from shipped_specs()


@_silent
def environments(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose the names of the environments of the project."""
    yield from _environments(ctx.params.get("folder"))


def _environments(given: Path | None) -> Iterator[str]:
    folder = Path(given) if given else nearest(Path.cwd(), "environments", exists=Path.is_dir)
    if folder is not None:
        yield from sorted(path.parent.name for path in folder.glob("*/Dockerfile"))


def _describes_job(path: Path) -> bool:
    """Return whether a file probably describes a job, from its beginning."""
    if not path.is_file() or path.suffix not in (*_YAML, ".py", ".ipynb"):
        return False
    with path.open("rb") as file:
        text = file.read(_BEGINNING)
    if path.suffix in _YAML:
        return bool(_JOB_IN_YAML.search(text)) and not _COMPONENT_IN_YAML.search(text)
    return b"azure.ai.ml" in text and b"command_component" not in text


def _workspace(ctx: typer.Context) -> Path:
    given = ctx.params.get("workspace") or ctx.params.get("folder")
    return Path(given) if given else nearest(Path.cwd(), ".allranks", exists=Path.is_dir) or Path()


@contextlib.contextmanager
def _store(ctx: typer.Context) -> Iterator[sqlite3.Connection]:
    """Open the store of the workspace for reading, without creating it."""
    import sqlite3

    path = (_workspace(ctx) / "allranks.db").absolute()
    # Without a journal there is no writer, and SQLite need not create files for the lock.
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    connection = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, timeout=_PATIENCE)
    try:
        yield connection
    finally:
        connection.close()
