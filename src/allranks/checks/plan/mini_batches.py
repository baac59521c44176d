"""Check a parallel step: its data, its settings, and the functions of its script."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path as FilePath

from allranks.checks.plan.scope import Scope
from allranks.contract.templating import used_names
from allranks.errors import Problem, Rule
from allranks.plan import mltable
from allranks.plan.graph import Parallel, Step
from allranks.plan.literals import one_of
from allranks.plan.ports import Path

PARALLEL = Rule.named("parallel")

LOGGING_LEVELS = ("DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL")

_LEAST = {
    "max_concurrency_per_instance": 1,
    "mini_batch_size": 1,
    "error_threshold": -1,
    "mini_batch_error_threshold": -1,
    "retry_settings.max_retries": 0,
    "retry_settings.timeout": 1,
}


def parallel(scope: Scope, step: Step) -> Iterator[Problem]:
    if (settings := step.parallel) is None:
        return
    yield from _ports(scope, step, settings)
    values = (
        *(settings.max_concurrency, settings.mini_batch_size, settings.error_threshold),
        *(settings.mini_batch_error_threshold, settings.max_retries, settings.timeout),
    )
    for (key, least), value in zip(_LEAST.items(), values, strict=True):
        if value is not None and value < least:
            yield Problem(scope.key(step, key), str(value), f"at least {least}")
    if settings.logging_level not in LOGGING_LEVELS:
        yield Problem(scope.key(step, "logging_level"), settings.logging_level, one_of(LOGGING_LEVELS, ""))
    if step.code is not None:
        yield from _script(scope, step, settings.entry_script, FilePath(step.code.folder))
    if scope.here:
        yield from _tables(scope, step, settings)


def _ports(scope: Scope, step: Step, settings: Parallel) -> Iterator[Problem]:
    where, inputs = scope.key(step, "input_data"), [port.name for port in step.inputs]
    if not settings.data:
        found = settings.input_data or "it is empty"
        yield Problem(where, found, "the input to divide, such as ${{inputs.data}}")
    for name in settings.data:
        if name not in inputs:
            yield Problem(where, f"there is no input {name}", one_of(inputs, "an input that the step declares"))
    for used in used_names(settings.append_row_to):
        outputs = [port.name for port in step.outputs]
        if used.kind != "outputs" or used.name not in outputs:
            expected = one_of(outputs, "an output that the step declares")
            yield Problem(scope.key(step, "task.append_row_to"), f"{used} is not an output of the step", expected)


def _script(scope: Scope, step: Step, entry: str, code: FilePath) -> Iterator[Problem]:
    where, file = scope.key(step, "task.entry_script"), code / entry
    if not entry or not os.path.isfile(file):
        found = f"{entry} is not in the code" if entry else "it is empty"
        yield Problem(where, found, "a Python file, relative to the code")
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # it may be written for another Python than this one; a worker reports the line
    if not _binds(tree.body, "run"):
        yield Problem(where, f"{entry} defines no function run", "def run(mini_batch):", "define it in the script")


def _binds(body: list[ast.stmt], name: str) -> bool:
    """Return whether statements may bind a name."""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return True
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name) in (name, "*") for alias in node.names):
                return True
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
    return False


def _tables(scope: Scope, step: Step, settings: Parallel) -> Iterator[Problem]:
    for port in step.inputs:
        value = scope.value(port.value)
        if port.name in settings.data and isinstance(value, Path):
            try:
                table = mltable.read(FilePath(value.path))
            except OSError as error:
                yield Problem(scope.key(step, f"inputs.{port.name}"), str(error), "an MLTable that can be read")
                continue
            if table is None and port.type == "mltable" and os.path.isdir(FilePath(value.path)):
                found = f"{value.path} has no file {mltable.NAME}"
                yield Problem(scope.key(step, f"inputs.{port.name}"), found, "a folder with one")
