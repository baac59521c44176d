"""Graphs and edits as plain data: those of `web/src/api.ts`, in which a value has a `kind`, and an edit an `op`."""

import re
from functools import cache
from typing import Any, cast, get_args

from cattrs import BaseValidationError, transform_error
from cattrs.preconf.json import JsonConverter, make_converter
from cattrs.strategies import configure_tagged_union

from allranks.errors import InputError, Problem
from allranks_studio.documents.canvas import Graph
from allranks_studio.documents.edits import Edit, Value


@cache
def _converter() -> JsonConverter:
    converter, value_of = make_converter(), cast("type[Any]", Value)
    configure_tagged_union(Value, converter, tag_generator=_kind, tag_name="kind")
    # A union with None is another one.
    converter.register_structure_hook(Value | None, lambda data, _: data and converter.structure(data, value_of))
    converter.register_unstructure_hook(Value | None, lambda value: value and converter.unstructure(value, Value))
    configure_tagged_union(Edit, converter, tag_generator=operation, tag_name="op")
    return converter


def _kind(value: type) -> str:
    return value.__name__.removeprefix("From").lower()


def operation(kind: type) -> str:
    """Return the `op` of a class of edits: ``add_node``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def to_data(graph: Graph) -> dict[str, Any]:
    """Return a graph as plain data."""
    data: dict[str, Any] = _converter().unstructure(graph)
    return data


def graph_from(data: Any) -> Graph:
    """Return the graph of plain data."""
    return _converter().structure(data, Graph)


def edit_data(edit: Edit) -> Any:
    """Return an edit as plain data."""
    return _converter().unstructure(edit, Edit)


def edits_from(data: Any) -> list[Edit]:
    """Return the edits of plain data. Raise InputError, with the place, for data that does not describe edits."""
    try:
        return _converter().structure(data, list[Edit])
    except (BaseValidationError, KeyError, TypeError, ValueError) as error:
        names = ", ".join(sorted(map(operation, get_args(Edit))))
        found = "; ".join(transform_error(error)) if isinstance(error, BaseValidationError) else repr(error)
        raise InputError(Problem("edits", found, f"a list of objects with op: {names}")) from None
