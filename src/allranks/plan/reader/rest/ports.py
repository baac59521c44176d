"""Convert inputs and outputs of REST bodies, whose literals are text, to the SDK's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from allranks.plan.reader import step_ports
from allranks.plan.reader.rest.assets import Assets
from allranks.sdk import internals

_BINDING = "${{"
_Literal = str | int | float | bool
_TRUTH = {"True": True, "False": False, "true": True, "false": False}


def inputs(rest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's inputs: a text for a literal, an Input for data."""
    job_inputs = {name: internals.rest_model("JobInput", value) for name, value in (rest or {}).items() if value}
    return dict(internals.from_rest_inputs(job_inputs))


def outputs(rest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's outputs, without the one that the service adds for its artifacts."""
    job_outputs = {name: internals.rest_model("JobOutput", value) for name, value in (rest or {}).items() if value}
    return {name: value for name, value in internals.from_rest_data_outputs(job_outputs).items() if name != "default"}


def settle(given: Any, assets: Assets) -> None:
    """Convert the inputs of a node to the types of their ports, and their data to paths on this machine."""
    from azure.ai.ml import Input

    for _, port in step_ports.flat(given):
        data, declared = internals.data(port), internals.declaration(port)
        if isinstance(data, Input) and data.path:
            data.path = assets.data(str(data.path))
        elif isinstance(data, str) and _BINDING not in data and declared is not None:
            internals.set_data(port, of_type(data, str(declared.type)))


def settle_items(items: Any, assets: Assets) -> None:
    """Convert the data in the items of a parallel_for loop to paths on this machine."""
    from azure.ai.ml import Input

    mappings = items.values() if isinstance(items, dict) else items if isinstance(items, list) else ()
    for item in mappings:
        for value in item.values():
            if isinstance(value, Input) and value.path:
                value.path = assets.data(str(value.path))


def of_type(text: str, kind: str) -> _Literal:
    """Return the value of a port of that type, or the text itself if the SDK would write the value differently."""
    readers = {"integer": (int,), "number": (int, _finite), "boolean": (_TRUTH.__getitem__,)}.get(kind, ())
    return _first(text, readers)


def guessed(text: str) -> _Literal:
    """Return the value of a text whose type is unknown."""
    return _first(text, (int, _finite, {"True": True, "False": False}.__getitem__))


def _first(text: str, readers: tuple[Callable[[str], _Literal], ...]) -> _Literal:
    for read in readers:
        try:
            value = read(text)
        except (ValueError, KeyError):
            continue
        if str(value) == text or isinstance(value, bool):
            return value
    return text


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value
