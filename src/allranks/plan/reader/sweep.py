"""Read a sweep: a node of a pipeline, or a job."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import replace
from typing import Any

from allranks.errors import Problem
from allranks.plan.graph import StandIn, Step, Sweep
from allranks.plan.ports import Input, Literal
from allranks.plan.reader import command_step, registered_component, stand_in
from allranks.plan.reader.command_step import setting
from allranks.plan.reader.context import Context, Place, plain, settled, whole
from allranks.plan.sweep import DISTRIBUTIONS, MOST_TRIALS, EarlyTermination, Parameter, Sampling, SweepLimits
from allranks.sdk import internals

CONDITIONAL = "a sweep with a choice of mappings"
"""azure-ai-ml sends it. How a command reads its values is not documented: Microsoft Learn, "Hyperparameter tuning a
model (v2)", has choices of single values."""
_PARAMETER = re.compile(r"\$\{\{\s*search_space\.([^\s{}]+)\s*}}")


def read(name: str, node: Any, context: Context) -> Sweep | StandIn | None:
    """Return a sweep with its trial; a node that does not run for one with a conditional search space. If the trial's
    component is not on this machine, add problems to the context and return None."""
    place = context.place(name)
    if not registered_component.attach(node, place, context):
        return None
    if is_conditional(node):
        found = stand_in.read(name, node, None, context, CONDITIONAL)
        return replace(found, inputs=tuple(port for port in found.inputs if port.name not in node.search_space))
    trial = internals.trial(node)
    if context.alone:
        # azure-ai-ml sends the variables of a job's trial, and none of a trial in a pipeline.
        trial.environment_variables = node.trial.environment_variables
    step = command_step.read(name, trial, context)
    if step is None:
        return None
    parameters = (_parameter(str(key), value, place, context) for key, value in (node.search_space or {}).items())
    space = tuple(parameter for parameter in parameters if parameter is not None)
    keys = ("max_total_trials", "max_concurrent_trials")
    total, concurrent = (whole(getattr(node.limits, key, None), f"limits.{key}", place, context) for key in keys)
    timeout = settled(getattr(node.limits, "timeout", None), "limits.timeout", place, context)
    objective = node.objective
    goal = str(settled(setting(objective, "goal"), "objective.goal", place, context) or "").lower()
    if goal not in ("minimize", "maximize"):
        context.problems.append(Problem(place.key("objective.goal"), repr(goal), "minimize or maximize"))
    return Sweep(
        name,
        _trial(step, space),
        space,
        str(settled(setting(objective, "primary_metric"), "objective.primary_metric", place, context) or ""),
        goal == "maximize",
        _sampling(node.sampling_algorithm, place, context),
        _early_termination(node.early_termination, place, context),
        SweepLimits(MOST_TRIALS if total is None else total, concurrent, None if timeout is None else float(timeout)),
        location=step.location,
    )


def is_conditional(sweep: Any) -> bool:
    """Return whether a sweep of the SDK has a choice of mappings: parameters that depend on another one's value."""
    choices = (_choices(distribution) for distribution in (sweep.search_space or {}).values())
    return any(isinstance(value, dict) for values in choices for value in values)


def _trial(step: Step, space: tuple[Parameter, ...]) -> Step:
    """Return the step with the search space's parameters as inputs. Its command may name them in either form."""
    kinds = {parameter.name: parameter.type for parameter in space}
    command = _PARAMETER.sub(lambda name: f"${{{{inputs.{name[1]}}}}}" if name[1] in kinds else name[0], step.command)
    ports = {port.name: replace(port, value=None) if port.name in kinds else port for port in step.inputs}
    read = {match[1] for match in _PARAMETER.finditer(step.command)}
    ports |= {name: Input(name, kind) for name, kind in kinds.items() if name in read and name not in ports}
    return replace(step, command=command, inputs=tuple(ports.values()))


def _parameter(name: str, distribution: Any, place: Place, context: Context) -> Parameter | None:
    where, kind = place.key(f"search_space.{name}"), str(setting(distribution, "type") or "").lower()
    if kind not in DISTRIBUTIONS:
        expected = f"a distribution: {', '.join(DISTRIBUTIONS)}"
        context.problems.append(Problem(where, repr(plain(distribution)), expected))
        return None
    key = f"search_space.{name}"
    numbers = (_number(setting(distribution, each), key, place, context) for each in DISTRIBUTIONS[kind])
    settled_values = (settled(value, key, place, context) for value in _choices(distribution))
    return Parameter(name, kind, tuple(numbers), tuple(Literal(each) for each in settled_values if each is not None))


def _choices(distribution: Any) -> tuple[Any, ...]:
    values = setting(distribution, "values")
    return tuple(values) if isinstance(values, (list, tuple)) else ()


def _number(value: Any, key: str, place: Place, context: Context) -> float | None:
    is_bound, value = internals.is_binding(value), settled(value, key, place, context)
    if is_bound and isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def _sampling(given: Any, place: Place, context: Context) -> Sampling:
    """Return how the search space is sampled. azure-ai-ml takes the name of an algorithm or an object."""
    text = given if isinstance(given, str) else getattr(given, "type", None) or "random"
    seed = whole(getattr(given, "seed", None), "sampling_algorithm.seed", place, context)
    rule = str(settled(getattr(given, "rule", None), "sampling_algorithm.rule", place, context) or "random").lower()
    base = settled(getattr(given, "logbase", None), "sampling_algorithm.logbase", place, context)
    number = math.e if base in (None, "e") else _number(base, "", place, context)
    if number is None or number <= 1:
        context.problems.append(Problem(place.key("sampling_algorithm.logbase"), repr(base), "a number above 1, or e"))
    return Sampling(str(plain(text)).lower(), rule, seed or 0, number or math.e)


def _early_termination(given: Any, place: Place, context: Context) -> EarlyTermination | None:
    if given is None:
        return None
    policy = str(plain(getattr(given, "type", given))).lower()
    if policy not in ("bandit", "median_stopping", "truncation_selection"):
        expected = "bandit, median_stopping or truncation_selection"
        context.problems.append(Problem(place.key("early_termination"), repr(policy), expected))
        return None

    def whole_number(key: str) -> int:
        return whole(getattr(given, key, None), f"early_termination.{key}", place, context) or 0

    return EarlyTermination(
        policy,
        whole_number("evaluation_interval") or 1,  # azure-ai-ml's default for bandit is 0
        whole_number("delay_evaluation"),
        _number(getattr(given, "slack_factor", None), "early_termination.slack_factor", place, context) or None,
        _number(getattr(given, "slack_amount", None), "early_termination.slack_amount", place, context) or None,
        whole_number("truncation_percentage"),
    )
