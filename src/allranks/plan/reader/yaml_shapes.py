"""Check the shapes of the values in a job's YAML: those that the SDK ignores or rounds, or that it reports without the
place or without what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from allranks.contract.distributions import DISTRIBUTIONS
from allranks.errors import Problem, did_you_mean
from allranks.plan import sweep
from allranks.plan.literals import number_with_point
from allranks.plan.ports import PRIMITIVES
from allranks.sdk.messages import described, unknown_key
from allranks.secrets import quoted

Where = Callable[[str], str]
"""Returns a key as messages name it."""

_DATA_TYPES = ("uri_file", "uri_folder", "mltable", "custom_model", "mlflow_model", "triton_model")
_MODES = {
    "inputs": ("ro_mount", "rw_mount", "mount", "download", "direct", "eval_mount", "eval_download"),
    "outputs": ("rw_mount", "mount", "upload", "direct"),
}
_WHOLE_NUMBERS = (
    *("resources.instance_count", "distribution.process_count_per_instance"),
    *("limits.max_total_trials", "limits.max_concurrent_trials"),
)

_OF_SWEEPS = {
    "sampling_algorithm.type": "grid, random, bayesian",
    "sampling_algorithm.rule": "random, sobol",
    "early_termination.type": "bandit, median_stopping, truncation_selection",
}
"""Keys of a sweep, with the words that are allowed."""

_TEXTS = {
    "command": "a text, one command line",
    "code": "a text, the path of a folder",
    "compute": "a text, the name of a compute target",
}
_IN_PREVIEW = {"code": "local_path", "compute": "target"}
"""Key -> the key below it that the first preview of the schema had for its text."""


def problems(tree: Mapping[str, Any], where: Where) -> Iterator[Problem]:
    """Yield the problems of a command job, or of each job of a pipeline that has a command or a component."""
    jobs = tree.get("jobs")
    if not isinstance(jobs, dict):
        yield from _of_job(tree, "", where)
        return
    yield from _of_ports(tree, "", where)
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
    for name, expected in _TEXTS.items():
        value = job.get(name, "")
        if not isinstance(value, str) and (name != "compute" or isinstance(value, (dict, list))):
            yield Problem(where(prefix + name), described(value), expected, _as_text(name, value))
    if not isinstance(job.get("environment", ""), (str, dict)):
        expected = "azureml:NAME:VERSION, file:PATH, or keys such as image and conda_file"
        yield Problem(where(f"{prefix}environment"), described(job["environment"]), expected)
    services = job.get("services")
    for name, service in services.items() if isinstance(services, dict) else ():
        if not isinstance(service, dict):
            yield Problem(where(f"{prefix}services.{name}"), described(service), "keys and values, such as type: ssh")
    for name in ("resources", "distribution", "environment_variables", "services"):
        if not isinstance(job.get(name) or {}, dict) and not _is_binding(job[name]):
            yield Problem(where(prefix + name), described(job[name]), "keys and values")
    yield from _of_variables(job, prefix, where)
    yield from _of_distribution(job, prefix, where)
    for key in _WHOLE_NUMBERS:
        section, _, name = key.partition(".")
        settings = job.get(section)
        value = settings.get(name) if isinstance(settings, dict) else None
        if isinstance(value, (float, bool, list, dict)):
            yield Problem(where(prefix + key), described(value), "a whole number")
    yield from _of_ports(job, prefix, where)
    yield from _of_sweep(job, prefix, where)


def _of_sweep(job: Mapping[str, Any], prefix: str, where: Where) -> Iterator[Problem]:
    space = job.get("search_space")
    for name, parameter in space.items() if isinstance(space, dict) else ():
        key = f"{prefix}search_space.{name}"
        kind = str(parameter.get("type", "")).lower() if isinstance(parameter, dict) else ""
        if kind not in sweep.DISTRIBUTIONS:
            fix = did_you_mean(kind, sweep.DISTRIBUTIONS, "choose a type")
            yield Problem(where(key), described(parameter), f"type: {', '.join(sweep.DISTRIBUTIONS)}", fix)
            continue
        for each in sweep.DISTRIBUTIONS[kind] or ("values",):
            value, kinds = parameter.get(each), (list,) if kind == "choice" else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds):
                found = f"{kind} has no {each}" if value is None else described(value)
                expected = "a list" if kind == "choice" else "a number"
                yield Problem(where(f"{key}.{each}"), found, expected, number_with_point(value))
    for key, allowed in _OF_SWEEPS.items():
        section, _, name = key.partition(".")
        settings = job.get(section)
        value = settings.get(name) if isinstance(settings, dict) else None
        if isinstance(value, str) and value.replace("_", "").lower() not in allowed.replace("_", "").split(", "):
            yield Problem(where(prefix + key), described(value), allowed, did_you_mean(value, allowed.split(", ")))
        if value == "truncation_selection" and "truncation_percentage" not in job[section]:
            yield Problem(where(prefix + section), f"{value} has no truncation_percentage", "a whole number", "add it")


def _of_variables(job: Mapping[str, Any], prefix: str, where: Where) -> Iterator[Problem]:
    variables = job.get("environment_variables")
    for name, value in variables.items() if isinstance(variables, dict) else ():
        if isinstance(value, (list, dict)):
            found = f"{described(value)}; Azure ML would set it to {quoted(str(name), str(value)[:60])}"
            yield Problem(where(f"{prefix}environment_variables.{name}"), found, "one value", "put the text in quotes")


def _of_distribution(job: Mapping[str, Any], prefix: str, where: Where) -> Iterator[Problem]:
    settings: Any = job.get("distribution")
    kind = DISTRIBUTIONS.get(str(settings.get("type"))) if isinstance(settings, dict) else None
    if kind is None:
        return  # the reader reports an unknown type
    known = ("type", *(field.name for field in fields(kind.settings)))
    for name in settings:
        if name not in known:
            similar = difflib.get_close_matches(name, known, n=1)
            yield unknown_key(where(f"{prefix}distribution.{name}"), similar[0] if similar else "")


def _of_ports(job: Mapping[str, Any], prefix: str, where: Where) -> Iterator[Problem]:
    for section, modes in _MODES.items():
        ports = job.get(section)
        if ports is not None and not isinstance(ports, dict):
            yield Problem(where(prefix + section), described(ports), "keys and values: a name and what belongs to it")
        for name, port in ports.items() if isinstance(ports, dict) else ():
            key = f"{prefix}{section}.{name}"
            if isinstance(port, list):
                yield Problem(where(key), described(port), "a value, or keys such as type and path")
            if isinstance(port, dict):
                yield from _choice(port, "type", (*_DATA_TYPES, *sorted(PRIMITIVES)), key, where)
                yield from _choice(port, "mode", modes, key, where)


def _choice(port: Mapping[str, Any], name: str, allowed: tuple[str, ...], key: str, where: Where) -> Iterator[Problem]:
    value = port.get(name)
    if value is None or value in allowed or _is_binding(value):
        return
    fix = did_you_mean(str(value), allowed, "use one of those")
    yield Problem(where(f"{key}.{name}"), described(value), f"one of {', '.join(allowed)}", fix)


def _as_text(name: str, value: Any) -> str:
    """Return how to write keys of the first preview, which had `instance_count` below `compute`; "" for others."""
    inner = value.get(_IN_PREVIEW.get(name, "")) if isinstance(value, dict) else None
    if not isinstance(inner, str):
        return ""
    others = ", ".join(str(key) for key in value if key != _IN_PREVIEW[name])
    return f"write {name}: {inner}{f', and {others} below resources' if others else ''}"


def _is_binding(value: Any) -> bool:
    return isinstance(value, str) and "${{" in value
