"""Resolve data that a pipeline names by an id or a URI to a path on this machine."""

from __future__ import annotations

from pathlib import Path as FilePath

from allranks.errors import InputError, Problem
from allranks.plan.assets import asset_id
from allranks.plan.ports import PRIMITIVES, Path, Value
from allranks.plan.reader.context import Context
from allranks.sdk.paths import is_remote


def resolved(value: Value | None, kind: str, address: str, where: str, context: Context) -> Value | None:
    """Return the value of a port, with a path on this machine in place of an id.

    kind:    the port's type
    address: the name of the pipeline's input, or STEP.INPUT, as in ``allranks.yaml``
    where:   the port as named in messages

    If this machine does not have the data, add a problem to the context and return the value unchanged.
    """
    lookup = context.lookup
    if lookup is None:
        return value
    try:
        path = _path(value, kind, address, where, context)
    except InputError as error:
        context.problems += error.problems
        return value
    return value if path is None else Path(str(path))


def _path(value: Value | None, kind: str, address: str, where: str, context: Context) -> FilePath | None:
    """Return the path for the value; None if the value is used as it is."""
    lookup = context.lookup
    assert lookup is not None
    mapped = lookup.input(address)
    if kind in PRIMITIVES:
        if mapped is not None:
            raise InputError(
                Problem(where, f"allranks.yaml gives it a path, but it is a {kind}", "", "remove the line")
            )
        return None
    if mapped is not None:
        return mapped
    if not isinstance(value, Path) or not is_remote(value.path):
        return None
    advice = f"or give a path: --set {address}=PATH" if "." not in address else ""
    return lookup.find(value.path, asset_id.MODEL if kind.endswith("_model") else asset_id.DATA, where, advice=advice)
