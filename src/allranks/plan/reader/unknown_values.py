"""Reject inputs whose value comes from a workspace, which is not contacted while a file is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import Location
from allranks.plan.reader import step_ports
from allranks.plan.reader.context import Place
from allranks.sdk import internals
from allranks.sdk.offline_values import Asset, Unknown


def refuse(job: Any, locate: Callable[[str], Location | None]) -> None:
    """Raise InputError if an input of the job, or of a node at any depth, has an unknown value."""
    problems = [Problem(f"input {name} of the pipeline", *_details(value)) for name, value in _unknown(job)]
    for path, node in _nodes(job, ""):
        place = Place(path, locate(path))
        problems += [Problem(place.key(f"inputs.{name}"), *_details(value)) for name, value in _unknown(node)]
    if problems:
        raise InputError.of(problems)


def _nodes(pipeline: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    nodes = getattr(pipeline, "jobs", None)
    for name, node in nodes.items() if isinstance(nodes, dict) else ():
        yield f"{prefix}{name}", node
        yield from _nodes(getattr(node, "component", None), f"{prefix}{name}.")


def _unknown(job: Any) -> Iterator[tuple[str, str]]:
    from azure.ai.ml import Input

    inputs = getattr(job, "inputs", None)
    for name, port in step_ports.flat(inputs) if isinstance(inputs, dict) else ():
        value = internals.data(port)
        value = value.path if isinstance(value, Input) else value
        if isinstance(value, Unknown) and not isinstance(value, Asset):
            yield name, value


def _details(value: str) -> tuple[str, str, str]:
    return f"it is {value}, which only a workspace knows", "a value that is known before the run", "write the value"
