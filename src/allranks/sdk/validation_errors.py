"""Convert azure-ai-ml's errors to short messages and problems, and suggest keys of its schemas."""

import contextlib
import copy
import difflib
import json
import re
from collections.abc import Iterator, Mapping, Set
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.single import Single
from allranks.contract.templating import EXPECTED
from allranks.errors import Problem, did_you_mean
from allranks.sdk import internals
from allranks.sdk.paths import shown
from allranks.sdk.schema_unions import MISSING_KEY, alternatives, is_schema, of_type
from allranks.secrets import quoted

_MAX_LENGTH = 300
MISSING_FILE = " does not exist"
"""The end of a message about a file."""
_KINDS = {
    **{kind: EXPECTED[kind] for kind in ("string", "integer", "number", "boolean")},
    "mapping": "keys and values",
    "list": "a list",
    "datetime": "a text such as 2026-01-31T08:00:00",
}
_KIND = re.compile(rf"Not a valid (?:\w+ )*?({'|'.join(_KINDS)})(?: type)?\.")
_CHOICES = re.compile(r"passed is not in set \[([^\]]*)\]")
_IMPLIED = ("Value passed is not a data binding string", "Not a valid ISO8601-formatted datetime")
"""Prefixes of complaints that are redundant if there is another one for the same key."""
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
"""Minimum similarity of a misspelt key and a known one."""
_VALUES = ("default", "path", "value")
"""The keys for the value of an input: in a component, of data in a job, of a literal in a job."""
Level = tuple[Any, ...]
"""The schemas and fields that may describe a value. Many keys accept values of several kinds."""
_EXPECTATION = ("one of ", "a ", "keys and values", "azureml:")
"""Prefixes of messages that only describe the allowed values."""
_NOT_AN_EXPECTATION = ("Invalid", "Not a valid", "Value ", "Field ")
"""Prefixes of messages that describe the error, not the allowed values."""


def is_own(error: BaseException) -> bool:
    """Return whether an exception is the SDK's own, whose message is meant for the user."""
    own = type(error).__module__.partition(".")[0] in ("azure", "marshmallow", "mldesigner", "msrest")
    return own or bool(_structured(error))


def messages_of(error: BaseException) -> list[tuple[str, str]]:
    """Return the SDK's complaints: (key such as ``jobs.train.inputs.lr``, message).

    Schema errors contain them as data, or as JSON within a text, sometimes nested. The message of any other error is
    its first paragraph."""
    texts: dict[str, list[str]] = {}
    structured = _structured(error)
    for key, text in _leaves(structured, "") if structured else _complaints(str(error), ""):
        texts.setdefault(key, []).append(text)
    return [(key, short_message(list(dict.fromkeys(each)))) for key, each in texts.items()] or [
        ("", type(error).__name__)
    ]


def one_line(error: BaseException) -> str:
    """Return an exception's message in one line, for the end of a sentence."""
    if not is_own(error):
        text = _shortened(str(error))
        return f"{type(error).__name__}: {text}" if text else type(error).__name__
    found = ((key or "expected" * text.startswith("one of "), text) for key, text in messages_of(error))
    return _shortened("; ".join(f"{key}: {text}" if key else text for key, text in found))


def _structured(error: BaseException | None) -> Any:
    """Return the complaints of marshmallow's error by key. The SDK raises other errors from it, whose texts contain the
    complaints, or fails to format such a text."""
    while error is not None:
        messages = getattr(error, "messages", None)
        if isinstance(messages, dict) or (
            isinstance(messages, list) and any(isinstance(each, dict) for each in messages)
        ):
            return messages
        error = error.__cause__ or error.__context__
    return {}


def _complaints(text: str, key: str) -> Iterator[tuple[str, str]]:
    parsed = _json_in(text)
    if isinstance(parsed, dict) and isinstance(parsed.get("errors"), list):
        for error in parsed["errors"]:
            path = str(error.get("path", "*"))
            yield from _complaints(str(error.get("message", "")), key if path == "*" else f"{key}.{path}".lstrip("."))
    elif isinstance(parsed, dict) and text.startswith("Validation for"):
        yield from _leaves(parsed, key)
    else:
        yield key, text


def short_message(texts: list[str]) -> str:
    """Return the complaints about one key as a short message."""
    text = "; ".join(texts)
    if MISSING_KEY in texts:
        return f"{MISSING_KEY} {_expectation(text)}".strip()
    missing = next(filter(None, map(_missing_file, texts)), "")
    return _shortened(missing or _expectation(text) or _reference(text) or text)


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


def _leaves(errors: Any, key: str, *, in_mapping: bool = False) -> Iterator[tuple[str, str]]:
    if isinstance(errors, dict):
        for name, inner in errors.items():
            # The complaints about the values of a mapping are below "value", those about a name in it below "key".
            is_side = name in ("key", "value") and not in_mapping and inner != ["Unknown field."]
            is_level = name == "_schema" or is_side
            yield from _leaves(inner, key if is_level else f"{key}.{name}".lstrip("."), in_mapping=is_side)
    elif isinstance(errors, list):
        for inner in errors:
            yield from _leaves(inner, key, in_mapping=in_mapping)
    else:
        yield key, str(errors)


def _expectation(text: str) -> str:
    """Return the allowed values and types from complaints such as "Not a valid integer."; "" for other complaints."""
    text = text.replace("Invalid input type.", "Not a valid mapping type.").removeprefix(MISSING_KEY)
    parts = [part for part in text.split("; ") if part and not part.startswith(_IMPLIED)]
    kinds = [match[1] for part in parts if (match := _KIND.fullmatch(part))]
    names = [name for group in _CHOICES.findall(text) for name in group.split(", ") if "string" not in kinds]
    choices = ["one of " + ", ".join(dict.fromkeys(name.strip("'\"\\") for name in names))] if names else []
    if not names and len(kinds) < len(parts):
        return ""
    kinds = sorted(set(kinds) - {"integer"} if "number" in kinds else set(kinds), key=[*_KINDS].index)
    return " or ".join((*choices, *(_KINDS[kind] for kind in kinds)))


def _reference(text: str) -> str:
    """Return the forms of a reference if the SDK explains that it accepts a name or a definition; else ""."""
    if "In order to specify an existing" in text or text.endswith("schema data cannot be a string"):
        return "azureml:NAME:VERSION where it is registered, or else its definition"
    return ""


def _missing_file(text: str) -> str:
    match = re.search(r"(?:No such file or directory|in resolved absolute path): ([^\]'\"]+?)\.?(?:[\]'\"]|$)", text)
    return f"{shown(match[1])}{MISSING_FILE}" if match else ""


def _shortened(text: str) -> str:
    text = " ".join(text.strip().split("\n\n", 1)[0].split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH].rstrip()} ..."


def misspelt(kind: str, tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield pairs of an unknown key of a file and a similar known key.

    kind: a key of `_SCHEMAS`
    tree: the content of the file

    The SDK ignores unknown keys in some places, for example in a step of a pipeline and in the distribution of a
    component. Unknown keys without a similar one are left to the SDK.
    """
    level = _root(kind)
    if level:
        yield from _misspelt(level, tree, "")


def of_step(tree: Mapping[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Return the SDK's complaints about a step with an inline command or Spark script, as `messages_of` does."""
    kind = "spark" if tree.get("type") == "spark" else "command"
    try:
        internals.schema(_SCHEMAS[f"{kind} step"])(context={"base_path": folder}).load(copy.deepcopy(dict(tree)))
    except Exception as error:  # those of its fields have no common class
        return messages_of(error)
    return []


def similar(kind: str, key: str, tree: Any) -> str:
    """Return the known key that is similar to an unknown one, such as ``compute`` for ``jobs.train.computte``; "" if
    there is none. tree: the content of the file"""
    level = _matching_type(_root(kind), tree)
    *parents, name = key.split(".")
    for parent in parents:
        tree = tree.get(parent) if isinstance(tree, dict) else None
        level = _matching_type(_inside(level, parent), tree)
    keys = _keys(level) - (tree.keys() if isinstance(tree, dict) else set())
    return _most_similar(name, keys, cutoff=0.6) or next(
        (each for each in _VALUES if name in _VALUES and each in keys), ""
    )


def type_of(tree: Mapping[str, Any], noun: str) -> str:
    """Return the type of a job or a component; that of its schema if the file sets no type."""
    schema = re.search(rf"(\w+){noun}\.schema", str(tree.get("$schema", "")), re.IGNORECASE)
    return str(tree.get("type") or (schema[1].lower() if schema else "pipeline" if "jobs" in tree else "command"))


def _misspelt(level: Level, tree: Any, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(tree, dict):
        return
    level = _matching_type(level, tree)
    keys = _keys(level)
    is_open = not keys or any(not is_schema(each) for each in level)
    for name, value in tree.items():
        key = f"{path}{name}"
        if not is_open and name not in keys:
            if closest := _most_similar(str(name), keys - tree.keys()):
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


def _matching_type(level: Level, tree: Any) -> Level:
    """Return the alternatives of the type that a mapping names; all if none has this type."""
    return (of_type(level, tree) if isinstance(tree, dict) else ()) or level


def _inside(level: Level, name: str) -> Level:
    """Return the schemas and fields that may describe the value of a key."""
    # In a mapping with names that the user chooses, such as those of steps, the name is irrelevant.
    return _described(level, name if any(map(is_schema, level)) else "")


@cache
def _described(level: Level, name: str) -> Level:
    found: list[Any] = []
    for each in level:
        if is_schema(each):
            fields = (field for key, field in each.fields.items() if (field.data_key or key) == name)
            for field in fields:
                found += alternatives(field)
        elif (values := getattr(each, "value_field", None)) is not None:
            found += alternatives(values)
    return tuple(found)


@cache
def _keys(level: Level) -> frozenset[str]:
    return frozenset(
        str(field.data_key or name) for each in level if is_schema(each) for name, field in each.fields.items()
    )


def _most_similar(name: str, keys: Set[str], cutoff: float = _CLOSE) -> str:
    return next(iter(difflib.get_close_matches(name, sorted(keys), n=1, cutoff=cutoff)), "")


def unknown_key(where: str, similar: str) -> Problem:
    """Return the problem of an unknown key. similar: the key to suggest; "" for none"""
    fix = f"did you mean {similar}?" if similar else "remove it, or correct its name"
    return Problem(where, "Azure ML has no such key", fix=fix, code="unknown-key")


def unknown_distribution(kind: str, where: str) -> Iterator[Problem]:
    """Yield the problem of a distribution whose type is unknown."""
    types = [name for name in DISTRIBUTIONS if name != Single.type]
    if kind.lower() not in types:
        yield Problem(where, repr(kind), f"one of {', '.join(types)}", did_you_mean(kind.lower(), types))


def described(value: object) -> str:
    if isinstance(value, dict):
        names = ", ".join(map(str, value))
        return f"keys and values: {names}" if len(names) in range(1, 80) else "keys and values"
    return "a list" if isinstance(value, list) else "nothing" if value is None else repr(value)


def refused(where: str, key: str, value: object, message: str, unquoted: str | None = None) -> Problem:
    """Return the problem of a key that the SDK refuses.

    value:    its value; None if it is unknown
    message:  a short message of `messages_of`
    unquoted: the raw text of the value, if YAML does not read it as text
    """
    if message.startswith(MISSING_KEY):
        return Problem(where, "the key is missing", message.removeprefix(MISSING_KEY).strip(), "add it")
    if message == "Field may not be null.":
        return Problem(where, "the key has no value", "a value", "write one, or remove the key")
    if message.endswith(MISSING_FILE):
        return Problem(where, message, "a path, relative to this file")
    is_expectation = message.startswith(_EXPECTATION)
    if unquoted is not None and is_expectation:
        return Problem(where, *_unquoted(unquoted, value, message))
    if value is None:
        return Problem(where, "azure-ai-ml refuses it", message) if is_expectation else Problem(where, message)
    found = described(value) if isinstance(value, (dict, list)) else quoted(key.replace(".", "_"), value)
    if isinstance(value, str) and key.rpartition(".")[2] == "default_compute" and message == "one of serverless":
        # A cluster is also allowed, but the SDK's message only has the other choice.
        return Problem(where, found, "azureml:NAME for a cluster, or serverless", f"write azureml:{value}")
    if message.startswith(_NOT_AN_EXPECTATION) or " must not " in message:
        return Problem(where, f"{found}: {message}", fix="correct the value")
    allowed = re.split(r", | or ", message.removeprefix("one of ")) if message.startswith("one of ") else []
    return Problem(where, found, message, did_you_mean(value.lower(), allowed) if isinstance(value, str) else "")


def _unquoted(written: str, value: object, expected: str) -> tuple[str, str, str]:
    """Return the texts for found, expected and fix, for a value that YAML does not read as text.

    written: the raw text of the value
    """
    if value is None:
        return "the key has no value", expected, "write one, or remove the key"
    kinds = {datetime: "a time", date: "a date", bool: f"{value}".lower()}
    kind = kinds.get(type(value), "a number" if written == str(value) else f"the number {value}")
    if "a text" in expected:
        return f"{written}, which YAML reads as {kind}", expected, f'put it in quotes: "{written}"'
    return (written if kind in (written, "a number") else f"{written}, which YAML reads as {kind}"), expected, ""
