"""The keys that azure-ai-ml's schemas know, to find the one that was probably meant."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from allranks.sdk import internals

_SCHEMAS = {
    "command job": "job.command_job:CommandJobSchema",
    "pipeline job": "pipeline.pipeline_job:PipelineJobSchema",
    "command component": "component.command_component:CommandComponentSchema",
    "parallel component": "component.parallel_component:ParallelComponentSchema",
    "pipeline component": "pipeline.pipeline_component:PipelineComponentSchema",
    "schedule": "schedule.schedule:JobScheduleSchema",
    "environment": "assets.environment:EnvironmentSchema",
}
_CLOSE = 0.75
"""Similarity above which an unknown key is a misspelt one."""

Level = tuple[Any, ...]
"""The schemas and fields that may describe a value. Several, because many keys accept values of several kinds."""


def misspelt(kind: str, tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each unknown key of a file that is similar to a known one, with the known one.

    kind: what the file describes, see `_SCHEMAS`
    tree: its content

    The SDK ignores unknown keys in some places, for example in a step of a pipeline and in the distribution of a
    component. Keys that resemble nothing are left to the SDK.
    """
    level = _root(kind)
    if level:
        yield from _misspelt(level, tree, "")


def similar(kind: str, key: str) -> str:
    """Return the known key that is similar to an unknown one, such as ``compute`` for ``jobs.train.computte``; "" if
    there is none."""
    level = _root(kind)
    *parents, name = key.split(".")
    for parent in parents:
        level = _inside(level, parent)
    return _closest(name, _keys(level))


def kind_of(tree: Mapping[str, Any]) -> str:
    """Return what a file of a component describes, for `misspelt`."""
    return f"{tree.get('type') or ('pipeline' if 'jobs' in tree else 'command')} component"


def _misspelt(level: Level, tree: Any, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(tree, dict):
        return
    keys = _keys(level)
    for name, value in tree.items():
        key = f"{path}{name}"
        if not _is_open(level) and keys and name not in keys:
            if closest := _closest(str(name), keys - tree.keys()):
                yield key, closest
            continue
        yield from _misspelt(_inside(level, str(name)), value, f"{key}.")


@cache
def _root(kind: str) -> Level:
    if kind not in _SCHEMAS:
        return ()
    # These modules are internal. Without them there are no suggestions.
    with contextlib.suppress(Exception):
        return (internals.schema(_SCHEMAS[kind])(context={"base_path": Path.cwd()}),)
    return ()


def _inside(level: Level, name: str) -> Level:
    """Return what may describe the value of a key."""
    # In a mapping with names of the user, such as those of steps, the name makes no difference.
    return _described(level, name if any(map(_is_schema, level)) else "")


@cache
def _described(level: Level, name: str) -> Level:
    found: list[Any] = []
    for each in level:
        if _is_schema(each):
            fields = (field for key, field in each.fields.items() if (field.data_key or key) == name)
            for field in fields:
                found += _alternatives(field)
        elif (values := getattr(each, "value_field", None)) is not None:
            found += _alternatives(values)
    return tuple(found)


def _alternatives(field: Any) -> Iterator[Any]:
    """Yield the schemas and the mappings that a field accepts."""
    if (inner := getattr(field, "experimental_field", None)) is not None:
        yield from _alternatives(inner)
    elif hasattr(field, "union_fields"):
        for each in field.union_fields:
            yield from _alternatives(each)
    elif hasattr(field, "nested"):
        try:
            yield field.schema
        except Exception:  # a schema that the SDK registers elsewhere
            yield field
    elif type(field).__name__ in ("Dict", "Mapping", "Raw", "Field"):
        yield field


def _is_schema(each: Any) -> bool:
    return hasattr(each, "fields") and hasattr(each, "load")


def _is_open(level: Level) -> bool:
    """Return whether any key is accepted."""
    return not level or any(not _is_schema(each) for each in level)


@cache
def _keys(level: Level) -> frozenset[str]:
    return frozenset(
        str(field.data_key or name) for each in level if _is_schema(each) for name, field in each.fields.items()
    )


def _closest(name: str, keys: frozenset[str]) -> str:
    return next(iter(difflib.get_close_matches(name, sorted(keys), n=1, cutoff=_CLOSE)), "")
