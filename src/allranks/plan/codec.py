"""Convert plans to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.launch import Distribution
from allranks.errors import InputError, Problem
from allranks.plan.graph import Condition, DoWhile, Item, ParallelFor, Pipeline, Plan, StandIn, Step, Sweep
from allranks.plan.ports import GraphInput, Literal, NodeOutput, Path, Text

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter

TAG = "kind"
"""The key with the class name of an object in a union."""

TAGGED: tuple[Any, ...] = (
    *DISTRIBUTIONS.values(),
    *(Literal, Path, GraphInput, NodeOutput, Text),
    *(Step, Pipeline, Condition, DoWhile, ParallelFor, StandIn, Sweep),
)
"""Classes that occur in unions or in place of their base class."""


def dumps(plan: Plan) -> str:
    """Return the plan as JSON, without its findings. An object of a tagged class carries the name of its class."""
    return json.dumps(replace(plan, findings=()), default=_in_json)


def _in_json(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):  # one that cannot be changed
        return dict(value)
    tag = {TAG: type(value).__name__} if type(value) in TAGGED else {}
    return {**tag, **{field.name: getattr(value, field.name) for field in fields(value)}}


@cache
def _converter() -> JsonConverter:
    """Return the converter that reads plans. Strings and numbers in a union with tagged classes are unchanged."""
    from cattrs.preconf.json import make_converter  # takes 0.1 s to import, and only reading needs it

    converter = make_converter()
    kinds = {kind.__name__: kind for kind in TAGGED}
    # JSON distinguishes integers, floats, booleans and strings, the only types of a literal.
    converter.register_structure_hook(Literal, lambda data, _: Literal(data["value"]))

    def is_tagged(kind: Any) -> bool:
        is_union = get_origin(kind) in (Union, UnionType)
        return kind is Distribution or (is_union and any(part in TAGGED for part in get_args(kind)))

    def read(data: Any, _: Any) -> Any:
        if isinstance(data, dict):
            return converter.structure(data, kinds[data[TAG]])
        # The items of a loop are the only list in a union.
        return converter.structure(data, tuple[Item, ...]) if isinstance(data, list) else data

    converter.register_structure_hook_func(is_tagged, read)
    return converter


def loads(text: str) -> Plan:
    """Return the plan that `dumps` wrote. Raise InputError if the text is damaged."""
    try:
        return _converter().loads(text, Plan)
    except Exception as error:  # the errors of JSON and of cattrs have no common class
        raise InputError(damaged(error)) from None


def damaged(error: Exception) -> Problem:
    """Return the problem of a stored plan that cannot be read."""
    found = f"it is damaged ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
    fix = "run the pipeline again: allranks run FILE"
    expected = "the plan that was stored when the run started"
    return Problem("the stored plan of the run", found, expected, fix, code="damaged-workspace")
