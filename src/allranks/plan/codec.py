"""Convert plans to JSON and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
"""The key with the name of an object's class, in a union."""

TAGGED: tuple[Any, ...] = (
    *(kind.settings for kind in DISTRIBUTIONS.values()),
    *(Literal, Path, GraphInput, NodeOutput, Text),
    *(Step, Pipeline, Condition, DoWhile, ParallelFor, StandIn, Sweep),
)
"""The classes that occur in unions or in place of their base class."""


@cache
def converter() -> JsonConverter:
    """Return the shared converter with ``dumps(value)`` and ``loads(text, type)``.

    An object of a tagged class carries the name of its class. Strings and numbers in the same union are unchanged.
    """
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn
    from cattrs.preconf.json import make_converter

    json_converter = make_converter()
    readers: dict[str, Callable[[Any, Any], Any]] = {}
    # JSON distinguishes integers, floats, booleans and strings, the only types of a literal.
    json_converter.register_structure_hook(Literal, lambda data, _: Literal(data["value"]))

    def tag(kind: Any) -> None:
        write: Any = make_dict_unstructure_fn(kind, json_converter)
        readers[kind.__name__] = (
            json_converter.get_structure_hook(kind) if kind is Literal else make_dict_structure_fn(kind, json_converter)
        )
        json_converter.register_unstructure_hook(kind, lambda value: {TAG: kind.__name__, **write(value)})

    def is_tagged(kind: Any) -> bool:
        is_union = get_origin(kind) in (Union, UnionType)
        return kind is Distribution or (is_union and any(part in TAGGED for part in get_args(kind)))

    def read(data: Any, _: Any) -> Any:
        if isinstance(data, dict):
            return readers[data[TAG]](data, None)
        # The items of a loop are the only list in a union.
        return json_converter.structure(data, tuple[Item, ...]) if isinstance(data, list) else data

    json_converter.register_structure_hook_func(is_tagged, read)
    json_converter.register_unstructure_hook_func(is_tagged, json_converter.unstructure)
    for kind in TAGGED:
        tag(kind)
    return json_converter


def dumps(plan: Plan) -> str:
    return converter().dumps(replace(plan, findings=()), Plan)


def loads(text: str) -> Plan:
    """Return the plan that `dumps` wrote. Raise InputError if the text is damaged."""
    try:
        return converter().loads(text, Plan)
    except Exception as error:  # the errors of JSON and of cattrs have no common class
        raise InputError(damaged(error)) from None


def damaged(error: Exception) -> Problem:
    """Return the problem of a stored plan that cannot be read."""
    found = f"it is damaged ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
    fix = "run the pipeline again: allranks run FILE"
    expected = "the plan that was stored when the run started"
    return Problem("the stored plan of the run", found, expected, fix, code="damaged-workspace")
