"""Snapshot the code of a component, merged with its additional includes, as Azure ML would receive it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import Code
from allranks.plan.reader import snapshot
from allranks.plan.reader.context import Context, Place
from allranks.sdk import internals
from allranks.sdk.paths import is_remote, shown
from allranks.sdk.runtime_copy import command_uses_runtime
from allranks.sdk.uploads import code_of, command_of


def snapshot_of(component: Any, place: Place, context: Context) -> Code | None:
    """Return the component's snapshot, or None if it has no code. Code that several steps use is copied once."""
    code = internals.code_text(component)
    includes = internals.includes_configs(component)
    includes_key = json.dumps([includes, command_uses_runtime(command_of(component))], default=str)
    key = (str(component.base_path), code, includes_key)
    if key not in context.codes:
        # Set first, so that a problem is also reported only once.
        context.codes[key] = None
        try:
            context.codes[key] = _copied(component, code, bool(includes), place, context)
        except InputError as error:
            context.problems += error.problems
    return context.codes[key]


def _copied(component: Any, code: str | None, includes: bool, place: Place, context: Context) -> Code | None:
    where = place.key("code")
    if code is None and not includes:
        return None
    if code is not None:
        if is_remote(code) or code.startswith("git+"):
            fix = "get a copy, and give its path as the component's code"
            raise InputError(Problem(where, f"{code} is not on this machine", "a local folder", fix))
        path = Path(component.base_path, code)
        if not path.exists():
            raise InputError(Problem(where, f"{shown(path)} does not exist", "a folder or a file"))
    if context.snapshots is None:
        return None
    # Earlier snapshots are not code, even if the folder of snapshots is inside of the code.
    excluded = (context.snapshots, context.snapshots.parent)
    with code_of(component, where, place.key("additional_includes"), excluded) as files:
        return snapshot.copy_files(files.files, context.snapshots, where) if files else None
