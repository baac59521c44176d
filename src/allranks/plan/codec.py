"""Plans as JSON, and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.launch import Distribution
from allranks.plan.graph import Condition, DoWhile, Item, ParallelFor, Pipeline, Plan, Step
from allranks.plan.ports import GraphInput, Literal, NodeOutput, Path, Text

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter

TAG = "kind"
"""The key that says which class of a union an object is of."""

TAGGED: tuple[Any, ...] = (
    *(kind.settings for kind in DISTRIBUTIONS.values()),
    *(Literal, Path, GraphInput, NodeOutput, Text),
    *(Step, Pipeline, Condition, DoWhile, ParallelFor),
)
"""The classes that stand in unions, or for their base class."""


@cache
def converter() -> JsonConverter:
    """Return the one converter: ``dumps(value)`` and ``loads(text, type)``.

    An object of a class that stands in a union carries its class's name; a text or a number beside it in the union
    stays as it is.
    """
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn
    from cattrs.preconf.json import make_converter

    made = make_converter()
    readers: dict[str, Callable[[Any, Any], Any]] = {}
    # JSON keeps integers, floats, booleans and texts apart, which is all that a literal can be.
    made.register_structure_hook(Literal, lambda data, _: Literal(data["value"]))

    def tag(kind: Any) -> None:
        write: Any = make_dict_unstructure_fn(kind, made)
        readers[kind.__name__] = (
            made.get_structure_hook(kind) if kind is Literal else make_dict_structure_fn(kind, made)
        )
        made.register_unstructure_hook(kind, lambda value: {TAG: kind.__name__, **write(value)})

    def is_tagged(kind: Any) -> bool:
        is_union = get_origin(kind) in (Union, UnionType)
        return kind is Distribution or (is_union and any(part in TAGGED for part in get_args(kind)))

    def read(data: Any, _: Any) -> Any:
        if isinstance(data, dict):
            return readers[data[TAG]](data, None)
        # The items of a loop are the one list in a union.
        return made.structure(data, tuple[Item, ...]) if isinstance(data, list) else data

    made.register_structure_hook_func(is_tagged, read)
    made.register_unstructure_hook_func(is_tagged, made.unstructure)
    for kind in TAGGED:
        tag(kind)
    return made


def dumps(plan: Plan) -> str:
    """Return the plan as JSON."""
    return converter().dumps(plan, Plan)


def loads(text: str) -> Plan:
    """Return the plan that `dumps` wrote."""
    return converter().loads(text, Plan)
