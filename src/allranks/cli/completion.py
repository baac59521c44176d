"""Complete runs, steps, inputs, sizes and components in a line that the user types.

A function reads little, changes nothing, and returns nothing on any error: a message would appear in the middle of the
line. Without proposals, a shell completes the names of files.
"""

import ast
import contextlib
import glob
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import typer

from allranks.catalog import shipped_specs
from allranks.catalog.variants import SPEC
from allranks.history.selection import find
from allranks.sdk.paths import nearest

_RUNS = 50
_STEPS = 1000
_PATIENCE = 0.1
"""Seconds to wait for the engine's writes."""

Complete: TypeAlias = Callable[[typer.Context, str], list[str]]


def silent(propose: Callable[[typer.Context, str], Iterable[str]]) -> Complete:
    """Return a function for typer that returns the proposals which begin with the incomplete word."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [text for text in dict.fromkeys(propose(ctx, incomplete)) if text.startswith(incomplete)]
        except Exception:
            return []

    # typer does not evaluate annotations that are strings.
    complete.__annotations__ = {"ctx": typer.Context, "incomplete": str, "return": list[str]}
    return complete


@silent
def complete_runs(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose ids of runs, the newest first, and the names of their jobs."""
    with _store(ctx) as connection:
        rows = connection.execute(
            "SELECT id, json_extract(record, '$.job_name') FROM run ORDER BY created DESC, rowid DESC LIMIT ?", (_RUNS,)
        ).fetchall()
    yield "latest"
    yield from (identity for identity, _ in rows)
    yield from (name for identity, name in rows if name and name != identity)


@silent
def complete_steps(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose the paths of the nodes of the run that the line names already."""
    with _store(ctx) as connection:
        run = find(connection, str(ctx.params.get("identity") or "latest"), _workspace(ctx))
        rows = connection.execute("SELECT path FROM node WHERE run = ? ORDER BY position LIMIT ?", (run, _STEPS))
        yield from (path for (path,) in rows.fetchall())


@silent
def complete_inputs(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose NAME=DEFAULT for each input of the pipeline, job or component that the line names already."""
    given = ctx.params.get("file") or ctx.params.get("files") or ""
    path, _, function = str(given if isinstance(given, str) else given[0]).partition(":")
    if ctx.params.get("identity"):
        found = _inputs_of_run(ctx)
    elif path.endswith(".py"):
        found = _inputs_of_functions(Path(path), function)
    else:
        import yaml  # takes 0.03 s, which other completions do not need

        spec = next((each for each in (Path(path), Path(path, SPEC)) if each.is_file()), shipped_specs().get(path))
        inputs = yaml.safe_load(spec.read_text(encoding="utf-8"))["inputs"] if spec else {}
        found = {name: each.get("default") if isinstance(each, dict) else each for name, each in inputs.items()}
    yield from (f"{name}={'' if value is None else value}" for name, value in found.items())


def _inputs_of_run(ctx: typer.Context) -> dict[str, Any]:
    with _store(ctx) as connection:
        run = find(connection, str(ctx.params["identity"]), _workspace(ctx))
        (text,) = connection.execute("SELECT record FROM run WHERE id = ?", (run,)).fetchone()
    return dict(json.loads(text)["inputs"])


def _inputs_of_functions(file: Path, name: str) -> dict[str, Any]:
    """Return the parameters of the pipeline functions in a Python file, which is not executed."""
    found: dict[str, Any] = {}
    for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef) and name in ("", function.name):
            decorators = [each.func if isinstance(each, ast.Call) else each for each in function.decorator_list]
            if any(ast.unparse(each).rpartition(".")[2] == "pipeline" for each in decorators):
                parameters = [*function.args.args, *function.args.kwonlyargs]
                defaults = [*function.args.defaults, *function.args.kw_defaults]
                values = [each.value if isinstance(each, ast.Constant) else None for each in defaults]
                missing = [None] * (len(parameters) - len(values))
                found.update(zip((each.arg for each in parameters), [*missing, *values], strict=True))
    return found


@silent
def complete_sizes(ctx: typer.Context, incomplete: str) -> Iterator[str]:  # noqa: ARG001
    """Propose the Azure sizes, with or without a step and =."""
    from allranks.hardware import sizes  # only this needs it

    step, equals, name = incomplete.rpartition("=")
    for size in sizes.sizes():
        known = size.name if name.startswith(sizes.PREFIX) else size.name.removeprefix(sizes.PREFIX)
        yield f"{step}{equals}{known}"


@silent
def complete_components(ctx: typer.Context, incomplete: str) -> Iterable[str]:  # noqa: ARG001
    """Propose the components of the library, unless files begin with the word."""
    return () if glob.glob(f"{glob.escape(incomplete)}*") else shipped_specs()


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
