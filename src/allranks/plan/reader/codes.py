"""The code of a component, merged by the SDK with what it includes, as a snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import Code
from allranks.plan.reader import snapshot
from allranks.plan.reader.context import Context, Place
from allranks.plan.reader.snapshot import NOTHING_IGNORED, Ignored
from allranks.sdk import complaints
from allranks.sdk.paths import is_remote, shown


def taken(component: Any, place: Place, context: Context) -> Code | None:
    """The component's snapshot, or None where it has no code. Taken once, however many steps use it."""
    code = component._get_origin_code_in_str()
    includes = component._get_all_additional_includes_configs()
    key = (str(component.base_path), code, json.dumps(includes, default=str))
    if key not in context.codes:
        # What is wrong is noted once too.
        context.codes[key] = None
        try:
            context.codes[key] = _taken(component, code, bool(includes), place, context)
        except InputError as error:
            context.problems += error.problems
    return context.codes[key]


def _taken(component: Any, code: str | None, includes: bool, place: Place, context: Context) -> Code | None:
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
    try:
        with component._build_code() as built:
            return snapshot.take(Path(built.path), context.snapshots, _ignored(built._ignore_file), where)
    except (ValueError, RuntimeError) as error:
        raise InputError(
            Problem(place.key("additional_includes"), complaints.one_line(error).removeprefix("ValueError: "))
        ) from None


def _ignored(file: Any) -> Ignored:
    """What an .amlignore or .gitignore beside the code leaves out."""
    if file is None:
        return NOTHING_IGNORED
    takes_in = any(line.startswith("!") for line in file._get_ignore_list())
    return Ignored(file.is_file_excluded, by_folder=not takes_in)
