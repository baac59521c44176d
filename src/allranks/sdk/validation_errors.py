"""Convert azure-ai-ml's errors to short messages, and name the key of its schemas that was probably meant."""

from __future__ import annotations

import ast
import contextlib
import copy
import difflib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from allranks.sdk import internals
from allranks.sdk.paths import shown

_MAX_LENGTH = 300
MISSING_FILE = " does not exist"
"""The end of a message about a file."""


def is_own(error: BaseException) -> bool:
    """Return whether an exception is the SDK's own, whose message is meant for the user."""
    return type(error).__module__.partition(".")[0] in ("azure", "marshmallow", "mldesigner", "msrest")


def messages_of(error: BaseException) -> list[tuple[str, Any, str]]:
    """Return the SDK's complaints: (key such as ``jobs.train.inputs.lr``, its value or None, message).

    Schema errors are JSON within a text, sometimes nested. The message of any other error is its first paragraph.
    """
    by_key: dict[str, tuple[str, Any, str]] = {}
    own = getattr(error, "messages", None)  # of marshmallow, in a step of a pipeline
    found = _complaints(str(error), "", None) if "errors" in str(error) or not isinstance(own, dict) else _of(own, "")
    for complaint in found:
        # If several types are allowed, the SDK reports an error for each. The missing file is the most likely one.
        if complaint[0] not in by_key or complaint[2].endswith(MISSING_FILE):
            by_key[complaint[0]] = complaint
    return list(by_key.values()) or [("", None, type(error).__name__)]


def one_line(error: BaseException) -> str:
    """Return an exception's message in one line, for the end of a sentence."""
    if not is_own(error):
        text = _shortened(str(error))
        return f"{type(error).__name__}: {text}" if text else type(error).__name__
    found = ((key or "expected" * text.startswith("one of "), text) for key, _, text in messages_of(error))
    return _shortened("; ".join(f"{key}: {text}" if key else text for key, text in found))


def _complaints(text: str, key: str, value: Any) -> Iterator[tuple[str, Any, str]]:
    parsed = _json_in(text)
    if isinstance(parsed, dict) and isinstance(parsed.get("errors"), list):
        for error in parsed["errors"]:
            path = str(error.get("path", "*"))
            inner = key if path == "*" else f"{key}.{path}".lstrip(".")
            yield from _complaints(str(error.get("message", "")), inner, _plain(error.get("value")))
    elif isinstance(parsed, dict) and text.startswith("Validation for"):
        yield from _of(parsed, key)
    elif alternative := _alternative(text):
        yield from _of(alternative, key)
    else:
        yield key, value, meaning(text)


def _of(errors: Mapping[str, Any], key: str) -> Iterator[tuple[str, Any, str]]:
    return ((inner, None, meaning(message)) for inner, message in _leaves(errors, key))


def _alternative(text: str) -> dict[str, Any]:
    """Return what one of several schemas complains of, if it is the only one of the value's type; else {}."""
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        parts = [ast.literal_eval(part) for part in text.split("; ")]
        fitting = [part for part in parts if isinstance(part, dict) and "type" not in part]
        if len(fitting) == 1 and len(parts) > 1 and any(isinstance(part, dict) and "type" in part for part in parts):
            return fitting[0]
    return {}


def meaning(text: str) -> str:
    """Return a complaint in short form."""
    return _shortened(_choices(text) or _missing_file(text) or _kinds(text) or _reference(text) or text)


def _json_in(text: str) -> Any:
    if not text.startswith("Validation for") and '"errors"' not in text:
        return None
    start = text.find("{")
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(text[start:])[0]
    except ValueError:
        return None


def _leaves(errors: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(errors, dict):
        for name, inner in errors.items():
            # The values of a mapping are below "value".
            is_level = name == "_schema" or (name == "value" and isinstance(inner, dict))
            yield from _leaves(inner, key if is_level else f"{key}.{name}".lstrip("."))
    elif isinstance(errors, list):
        for inner in errors:
            yield from _leaves(inner, key)
    else:
        yield key, str(errors)


def _choices(text: str) -> str:
    """Return the allowed values, if a value matches none of several schemas; "" if they are not listed."""
    choices = [name for group in re.findall(r"passed is not in set \[([^\]]*)\]", text) for name in group.split(", ")]
    if not choices:
        return ""
    return "one of " + ", ".join(dict.fromkeys(name.strip("'\"\\") for name in choices))


def _kinds(text: str) -> str:
    """Return the expected types from a list of complaints such as "Not a valid integer."; "" for other texts."""
    kinds = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
    kinds["mapping"] = "keys and values"
    text = text.replace("Invalid input type.", "Not a valid mapping.").replace("mapping type.", "mapping.")
    parts = [part for part in text.split("; ") if not part.startswith("Value passed is not a data binding string")]
    types = [match[1] for part in parts if (match := re.fullmatch(r"Not a valid (?:\w+ )*(\w+)\.", part))]
    known = dict.fromkeys(kinds.get(kind, f"a {kind}") for kind in types)
    return " or ".join(known) if len(types) == len(parts) else ""


def _reference(text: str) -> str:
    """Return the expected forms of a reference, if the SDK explains that it accepts a name or a definition; else ""."""
    if "In order to specify an existing" in text or text.endswith("schema data cannot be a string"):
        return "azureml:NAME:VERSION where it is registered, or else its definition"
    return ""


def _missing_file(text: str) -> str:
    match = re.search(r"(?:No such file or directory|in resolved absolute path): ([^\]'\"]+?)\.?(?:[\]'\"]|$)", text)
    return f"{shown(match[1])}{MISSING_FILE}" if match else ""


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return _shortened(json.dumps(value, default=str))


def _shortened(text: str) -> str:
    text = " ".join(text.strip().split("\n\n", 1)[0].split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH].rstrip()} ..."


_SCHEMAS = {
    "command job": "job.command_job:CommandJobSchema",
    "command step": "pipeline.pipeline_command_job:PipelineCommandJobSchema",
    "spark job": "job.spark_job:SparkJobSchema",
    "spark step": "pipeline.pipeline_spark_job:PipelineSparkJobSchema",
    "sweep job": "_sweep.sweep_job:SweepJobSchema",
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


def of_step(tree: Mapping[str, Any], folder: Path) -> list[tuple[str, Any, str]]:
    """Return the SDK's complaints about a step with a command or a Spark script of its own, as `messages_of`."""
    kind = "spark" if tree.get("type") == "spark" else "command"
    try:
        internals.schema(_SCHEMAS[f"{kind} step"])(context={"base_path": folder}).load(copy.deepcopy(dict(tree)))
    except Exception as error:  # also those of its fields, which have no common class
        return messages_of(error)
    return []


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
