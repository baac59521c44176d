"""Convert values of ``--set NAME=VALUE`` from text to the types of the pipeline's inputs."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from allranks.contract.templating import EXPECTED, Primitive
from allranks.errors import Problem, did_you_mean, raise_any
from allranks.plan.graph import Plan
from allranks.plan.ports import PRIMITIVES, Literal, Value
from allranks.plan.ports import Path as DataPath
from allranks.sdk.paths import located
from allranks.secrets import quoted

STAND_IN = "--stand-in "
"""The prefix of stand-ins among the values of a pipeline's inputs. They are stored with a run, and applied again when
its file is read again."""


def with_stand_ins(values: Mapping[str, str], folders: Mapping[str, str | os.PathLike[str]] | None) -> dict[str, str]:
    """Return the values with an entry for each stand-in. folders: by the path of the step"""
    return {**values, **{f"{STAND_IN}{step}": os.path.abspath(path) for step, path in (folders or {}).items()}}


def split(values: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Path]]:
    """Return the values of inputs, and the folders that stand in for steps."""
    inputs = {name: text for name, text in values.items() if not name.startswith(STAND_IN)}
    return inputs, {name.removeprefix(STAND_IN): Path(values[name]) for name in values if name not in inputs}


def refuse_unknown(texts: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise InputError if a value has a name that no input has."""
    known, problems = list(names), []
    expected = "one of the pipeline's inputs: " + ", ".join(known) if known else "nothing: the pipeline has no inputs"
    for name in (name for name in texts if name not in known):
        found, fix = f"the pipeline has no input {name}", did_you_mean(name, known, "remove it, or declare the input")
        problems.append(Problem(f"input {name}", found, expected, fix, code="unknown-input"))
    raise_any(problems)


def converted(texts: Mapping[str, str], types: Mapping[str, str]) -> dict[str, tuple[str, Primitive]]:
    """Return the types and the values of texts, by name. Raise InputError for invalid values."""
    values: dict[str, tuple[str, Primitive]] = {}
    problems = []
    for name, text in texts.items():
        try:
            values[name] = types[name], convert(text, types[name])
        except ValueError as error:
            problems.append(wrong(name, text, str(error)))
    raise_any(problems)
    return values


def convert(text: str, type_name: str) -> Primitive:
    """Return the value of the text. Data is a path, relative to the current folder.

    Raise ValueError, with what is expected, for an invalid value.
    """
    try:
        if type_name == "integer":
            return int(text)
        if type_name == "number":
            if math.isfinite(number := float(text)):
                return number
            raise ValueError
        if type_name == "boolean":
            return {"true": True, "false": False}[text.strip().lower()]
    except (ValueError, KeyError):
        raise ValueError(EXPECTED[type_name]) from None
    if type_name == "string":
        return text
    if not text:
        raise ValueError("a path")
    return located(text, Path.cwd())


def guessed_type(value: Primitive | None) -> str:
    """Return the type of an undeclared input, derived from its value as the SDK does; string if it has none."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string"


def with_inputs(plan: Plan, texts: Mapping[str, str]) -> Plan:
    """Return the plan with new values of its inputs. Raise InputError for an unknown name or an invalid value."""
    refuse_unknown(texts, plan.graph.input_by_name)
    values: dict[str, Value] = {
        name: Literal(value) if kind in PRIMITIVES else DataPath(str(value))
        for name, (kind, value) in converted(texts, {port.name: port.type for port in plan.graph.inputs}).items()
    }
    inputs = tuple(replace(port, value=values.get(port.name, port.value)) for port in plan.graph.inputs)
    return replace(plan, graph=replace(plan.graph, inputs=inputs))


def wrong(name: str, text: str, expected: str) -> Problem:
    """Return the problem for a value that cannot be converted."""
    return Problem(f"input {name}", quoted(name, text), expected, f"set {name} to {expected}")
