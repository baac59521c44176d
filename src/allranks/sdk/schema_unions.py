"""Report the errors of only one alternative, where azure-ai-ml's schemas accept values of several kinds.

azure-ai-ml lists the errors of all alternatives of a union: for a distribution of the type pytorch, also its errors as
one of tensorflow, mpi and ray.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from allranks.sdk import internals

MISSING_KEY = "Missing data for required field."
"""The SDK's message for a missing key."""
_NOT_A_MAPPING = "Not a valid mapping type."


@contextlib.contextmanager
def selected_alternatives() -> Iterator[None]:
    """Let azure-ai-ml only report the errors of the alternative that a value selects, inside of the block."""
    from marshmallow import ValidationError  # takes 0.1 s to import

    union = internals.schema_fields.UnionField
    deserialize = vars(union)[internals.DESERIALIZE]
    if deserialize.__module__ == __name__:  # a session inside of another one
        yield
        return

    def deserialized(field: Any, value: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return deserialize(field, value, *arguments, **options)
        except ValidationError as error:
            complaints = dict(zip(field.union_fields, error.messages, strict=True))
            raise ValidationError(_selected(complaints, value)) from None
        except AttributeError:  # the SDK prepares mappings, which fails for any other value
            if isinstance(value, dict):
                raise
            raise ValidationError(_NOT_A_MAPPING) from None

    with internals.replaced(union, internals.DESERIALIZE, deserialized):
        yield


def alternatives(field: Any) -> Iterator[Any]:
    """Yield the schemas and the mappings that a field accepts."""
    if (inner := getattr(field, "experimental_field", None)) is not None:
        yield from alternatives(inner)
    elif hasattr(field, "union_fields"):
        for each in field.union_fields:
            yield from alternatives(each)
    elif hasattr(field, "nested"):
        try:
            yield field.schema
        except Exception:  # the SDK registers this schema elsewhere
            yield field
    elif type(field).__name__ in ("Dict", "Mapping", "Raw", "Field"):
        yield field


def is_schema(each: Any) -> bool:
    return hasattr(each, "fields") and hasattr(each, "load")


def of_type(level: Iterable[Any], value: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the schemas and mappings of the type that a value names; all if it names none."""
    level = tuple(level)
    return tuple(each for each in level if _has_type(each, value["type"])) if "type" in value else level


def _has_type(each: Any, kind: Any) -> bool:
    from marshmallow import ValidationError  # takes 0.1 s to import

    if not is_schema(each):
        return True
    try:
        return "type" in each.fields and bool(each.fields["type"].deserialize(kind))
    except ValidationError:
        return False


def _selected(complaints: Mapping[Any, Any], value: Any) -> list[Any]:
    """Return the complaints to report for a value. complaints: of each field of a union"""
    kind = type(value) if isinstance(value, (dict, list)) else str
    binding = internals.schema_fields.DataBindingStr
    complaints = {field: complaint for field, complaint in complaints.items() if not isinstance(field, binding)}
    of_file = isinstance(value, str) and value.startswith("file:")  # the file contains the keys and values
    fitting = {field: complaint for field, complaint in complaints.items() if _takes(field, dict if of_file else kind)}
    if kind is not dict or not fitting:
        mapping = [_NOT_A_MAPPING] if any(_takes(field, dict) for field in complaints) else []
        others = [complaint for field, complaint in complaints.items() if not _takes(field, dict)]
        return list(fitting.values()) or [*others, *mapping]
    schemas = {schema: complaint for field, complaint in fitting.items() for schema in alternatives(field)}
    typed = of_type(schemas, value)
    if not typed:
        return [{"type": [f"Value {value['type']!r} passed is not in set {_types(schemas)}"]}]
    fewest = min(_unknown_keys(schema, value) for schema in typed)
    likely = [schema for schema in typed if _unknown_keys(schema, value) == fewest]
    complaint = schemas[likely[0]]
    types = [each.fields.get("type") if is_schema(each) else None for each in likely]
    if "type" not in value and all(field is not None and field.required for field in types):
        return [{**complaint, "type": [MISSING_KEY, f"Value None passed is not in set {_types(likely)}"]}]
    return [complaint]


def _takes(field: Any, kind: type) -> bool:
    """Return whether an alternative accepts mappings (dict), lists (list) or single values (str)."""
    if (inner := getattr(field, "experimental_field", None)) is not None:
        return _takes(inner, kind)
    if hasattr(field, "union_fields"):
        return any(_takes(each, kind) for each in field.union_fields)
    if any(alternatives(field)):
        return kind is dict
    return kind is (list if hasattr(field, "inner") else str)


def _types(schemas: Iterable[Any]) -> list[str]:
    return list(
        dict.fromkeys(name for each in schemas if is_schema(each) for name in _choices(each.fields.get("type")))
    )


def _choices(field: Any) -> Iterator[str]:
    yield from getattr(field, "allowed_values", ())
    for each in getattr(field, "union_fields", ()):
        yield from _choices(each)


def _unknown_keys(schema: Any, value: Mapping[str, Any]) -> int:
    known = {field.data_key or name for name, field in schema.fields.items()} if is_schema(schema) else set(value)
    return len(value.keys() - known)
