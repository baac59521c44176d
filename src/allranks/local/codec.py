"""Plans and records as JSON, and back."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter

TAG = "kind"
"""The key that says which class of a union an object is."""


@cache
def converter() -> JsonConverter:
    """The one converter: ``dumps(value)`` and ``loads(text, type)``.

    An object of a class that occurs in a union carries its class's name; texts and numbers beside it in the union stay as they are.
    """
    from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn
    from cattrs.preconf.json import make_converter

    from allranks.contract.distributions import Distribution
    from allranks.local.plan import Literal, Path, PipelineInput, StepOutput, Text

    made = make_converter()
    tagged: dict[str, Any] = {}

    def tag(kind: type) -> None:
        plain = make_dict_unstructure_fn(kind, made)
        tagged[kind.__name__] = make_dict_structure_fn(kind, made)
        made.register_unstructure_hook(kind, lambda value: {TAG: kind.__name__, **plain(value)})

    def is_ours(kind: Any) -> bool:
        return get_origin(kind) in (Union, UnionType) and any(getattr(part, "__name__", "") in tagged for part in get_args(kind))

    def structure(value: Any, _: Any) -> Any:
        return tagged[value[TAG]](value, None) if isinstance(value, dict) else value

    # Text holds the others, so it comes last.
    for kind in (*get_args(Distribution), Literal, Path, PipelineInput, StepOutput, Text):
        tag(kind)
    made.register_structure_hook_func(is_ours, structure)
    made.register_unstructure_hook_func(is_ours, lambda value: made.unstructure(value))
    made.register_structure_hook(Literal, lambda value, _: Literal(value["value"]))
    tagged["Literal"] = lambda value, _: Literal(value["value"])
    return made
