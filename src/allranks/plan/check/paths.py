"""Data: inputs that are there and readable, of the kind that the port takes; outputs that can be written."""

from __future__ import annotations

import os
from collections.abc import Iterator

from allranks.contract.templating import used_placeholders
from allranks.errors import Problem
from allranks.plan.check import place
from allranks.plan.graph import FILE_TYPES, PRIMITIVES, Input, Output, Path, Plan, Step
from allranks.sdk import paths

_PLACEHOLDERS = ("name", "output_name", "default_datastore")


def of_pipeline_input(plan: Plan, port: Input, here: bool) -> Iterator[Problem]:
    """What is wrong with data that an input of the pipeline names. here: whether this machine has to read it."""
    if isinstance(port.value, Path) and port.type not in PRIMITIVES:
        where = place.of_pipeline(plan, f"inputs.{port.name}")
        yield from _wrong(where, port, port.value.path, here, f"name another: --set {port.name}=PATH")


def of_input(step: Step, port: Input, here: bool) -> Iterator[Problem]:
    """What is wrong with data that a step's input names by itself."""
    if isinstance(port.value, Path) and port.type not in PRIMITIVES:
        where = place.of_key(step, f"inputs.{port.name}")
        yield from _wrong(
            where, port, port.value.path, here, "bind it to an input of the pipeline, which --set can change"
        )


def of_output(step: Step, output: Output) -> Iterator[Problem]:
    """What is wrong with the path that the user wants an output to have."""
    if output.path is None or paths.is_remote(output.path):
        # What belongs into a datastore stays in the run's folder.
        return
    where = place.of_key(step, f"outputs.{output.name}")
    for name in used_placeholders(output.path):
        if name not in _PLACEHOLDERS:
            known = [f"${{{{{known}}}}}" for known in _PLACEHOLDERS]
            yield Problem(where, f"${{{{{name}}}}} is not known in a path", place.one_of(known, ""))
    if used_placeholders(output.path):
        return
    is_file = output.type in FILE_TYPES
    if os.path.isdir(output.path) if is_file else os.path.isfile(output.path):
        found = f"{paths.shown(output.path)} is a {'folder' if is_file else 'file'}"
        yield Problem(where, found, f"a {'file' if is_file else 'folder'}, or nothing yet", "give another path")


def _wrong(where: str, port: Input, path: str, here: bool, fix: str) -> Iterator[Problem]:
    if paths.is_remote(path):
        if not here:
            return
        yield Problem(where, f"{path} cannot be read on this machine", "a local path", f"get a copy, then {fix}")
    elif not os.path.exists(path):
        yield Problem(where, f"{paths.shown(path)} does not exist", f"a path that exists ({port.type})", fix)
    elif port.type == "uri_file" and os.path.isdir(path):
        yield Problem(where, f"{paths.shown(path)} is a folder", "a file (uri_file)", fix)
    elif port.type not in ("uri_file", "custom_model") and os.path.isfile(path):
        yield Problem(where, f"{paths.shown(path)} is a file", f"a folder ({port.type})", fix)
    elif not os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0)):
        yield Problem(where, f"{paths.shown(path)} cannot be read: permission denied", "data that you may read", fix)
