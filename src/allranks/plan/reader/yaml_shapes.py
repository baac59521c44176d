"""Check the shapes of the values in a job's YAML: those that the SDK ignores or rounds, or that it reports without the
place or without what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from allranks.errors import Problem
from allranks.sdk.validation_errors import described
from allranks.secrets import quoted

Where = Callable[[str], str]
"""Returns a key as messages name it."""

_WHOLE_NUMBERS = (
    *("resources.instance_count", "distribution.process_count_per_instance"),
    *("limits.max_total_trials", "limits.max_concurrent_trials"),
)

_IN_PREVIEW = {"code": "local_path", "compute": "target"}
"""Key -> the key below it that the first preview of the schema had for its text."""


def problems(tree: Mapping[str, Any], where: Where) -> Iterator[Problem]:
    """Yield the problems of a command job, or of each job of a pipeline that has a command or a component."""
    jobs = tree.get("jobs")
    if not isinstance(jobs, dict):
        yield from _of_job(tree, "", where)
        return
    for name, job in jobs.items():
        key = f"jobs.{name}"
        if not isinstance(job, dict):
            expected = "keys and values: a component or a command, inputs and outputs"
            yield Problem(where(key), described(job), expected, "write the step's keys below its name")
        elif job.get("type", "command") in ("command", "sweep"):
            yield from _of_job(job, f"{key}.", where)
        elif job["type"] == "parallel_for":
            yield from _of_items(job.get("items"), f"{key}.items", where)


def _of_items(items: Any, key: str, where: Where) -> Iterator[Problem]:
    each: Iterable[Any] = items.values() if isinstance(items, dict) else items if isinstance(items, list) else ()
    for number, item in enumerate(each):
        if not isinstance(item, dict):
            expected = "keys and values: the inputs of the body that differ"
            yield Problem(where(key), f"item {number} is {described(item)}", expected, "write {INPUT: VALUE}")
        elif nothing := [str(name) for name, value in item.items() if value is None]:
            yield Problem(where(key), f"item {number} has no value for {', '.join(nothing)}", "values", "write them")


def _of_job(job: Mapping[str, Any], prefix: str, where: Where) -> Iterator[Problem]:
    for name, inner in _IN_PREVIEW.items():
        value = job.get(name)
        if isinstance(value, dict) and isinstance(value.get(inner), str):
            others = ", ".join(str(key) for key in value if key != inner)
            fix = f"write {name}: {value[inner]}{f', and {others} below resources' if others else ''}"
            yield Problem(where(prefix + name), described(value), "a text", fix)
    yield from _of_variables(job, prefix, where)
    for key in _WHOLE_NUMBERS:
        section, _, name = key.partition(".")
        settings = job.get(section)
        value = settings.get(name) if isinstance(settings, dict) else None
        if isinstance(value, (float, bool, list, dict)):
            yield Problem(where(prefix + key), described(value), "a whole number")


def _of_variables(job: Mapping[str, Any], prefix: str, where: Where) -> Iterator[Problem]:
    variables = job.get("environment_variables")
    for name, value in variables.items() if isinstance(variables, dict) else ():
        if isinstance(value, (list, dict)):
            found = f"{described(value)}; Azure ML would set it to {quoted(str(name), str(value)[:60])}"
            yield Problem(where(f"{prefix}environment_variables.{name}"), found, "one value", "put the text in quotes")
