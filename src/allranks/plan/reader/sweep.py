"""Read a sweep: a node of a pipeline, or a job."""

import contextlib
import math
import re
from dataclasses import replace
from typing import Any

from allranks.errors import Problem, StepPlace
from allranks.plan.graph import StandIn, Step, Sweep
from allranks.plan.ports import Input, Literal
from allranks.plan.reader import command_step, stand_in
from allranks.plan.reader.context import Context, integer, known_value
from allranks.plan.sweep import DISTRIBUTIONS, MOST_TRIALS, EarlyTermination, Parameter, Sampling, SweepLimits
from allranks.sdk.request import ComponentRequest, NodeRequest

CONDITIONAL = "a sweep with a choice of mappings"
"""azure-ai-ml sends it, but how a command reads its values is not documented: Microsoft Learn, "Hyperparameter tuning a
model (v2)", only has choices of single values."""
_PARAMETER = re.compile(r"\$\{\{\s*search_space\.([^\s{}]+)\s*}}")


def read(name: str, node: NodeRequest, component: ComponentRequest, context: Context) -> Sweep | StandIn:
    """Return a sweep with its trial; a stand-in if the search space is conditional."""
    place, body = context.place(name), node.body
    search_space = body.get("search_space") or {}
    if is_conditional(node):
        found = stand_in.read(name, node, None, context, CONDITIONAL)
        return replace(found, inputs=tuple(port for port in found.inputs if port.name not in search_space))
    limits, objective = body.get("limits") or {}, body.get("objective") or {}
    trial = replace(node, body={**body, "limits": {"timeout": limits.get("trial_timeout")}})
    step = command_step.read(name, trial, component, context)
    parameters = (_parameter(key, value, place, context) for key, value in search_space.items())
    space = tuple(parameter for parameter in parameters if parameter is not None)
    keys = ("max_total_trials", "max_concurrent_trials")
    total, concurrent = (integer(limits.get(key), f"limits.{key}", place, context) for key in keys)
    timeout = known_value(limits.get("timeout"), "limits.timeout", place, context)
    goal = str(known_value(objective.get("goal"), "objective.goal", place, context) or "").lower()
    if goal not in ("minimize", "maximize"):
        context.problems.append(Problem(place.key("objective.goal"), repr(goal), "minimize or maximize"))
    return Sweep(
        name,
        _trial(step, space),
        space,
        str(known_value(objective.get("primary_metric"), "objective.primary_metric", place, context) or ""),
        goal == "maximize",
        _sampling(body.get("sampling_algorithm"), place, context),
        _early_termination(body.get("early_termination"), place, context),
        SweepLimits(
            MOST_TRIALS if total is None else total,
            concurrent,
            None if timeout is None else command_step.seconds(timeout),
        ),
        location=step.location,
    )


def is_conditional(sweep: NodeRequest) -> bool:
    """Return whether a sweep has a choice of mappings: parameters that depend on the value of another one."""
    choices = (_choices(distribution) for distribution in (sweep.body.get("search_space") or {}).values())
    return any(isinstance(value, dict) for values in choices for value in values)


def _trial(step: Step, space: tuple[Parameter, ...]) -> Step:
    """Return the step with the search space's parameters as inputs. Its command may use either form of reference."""
    kinds = {parameter.name: parameter.type for parameter in space}
    command = _PARAMETER.sub(lambda name: f"${{{{inputs.{name[1]}}}}}" if name[1] in kinds else name[0], step.command)
    ports = {port.name: replace(port, value=None) if port.name in kinds else port for port in step.inputs}
    read = {match[1] for match in _PARAMETER.finditer(step.command)}
    ports |= {name: Input(name, kind) for name, kind in kinds.items() if name in read and name not in ports}
    return replace(step, command=command, inputs=tuple(ports.values()))


def _parameter(name: str, distribution: Any, place: StepPlace, context: Context) -> Parameter | None:
    settings = distribution if isinstance(distribution, dict) else {}
    where, kind = place.key(f"search_space.{name}"), str(settings.get("type") or "").lower()
    if kind not in DISTRIBUTIONS:
        expected = f"a distribution: {', '.join(DISTRIBUTIONS)}"
        context.problems.append(Problem(where, repr(distribution), expected))
        return None
    key = f"search_space.{name}"
    numbers = (_number(settings.get(each), key, place, context) for each in DISTRIBUTIONS[kind])
    choices = (known_value(value, key, place, context) for value in _choices(settings))
    return Parameter(name, kind, tuple(numbers), tuple(Literal(each) for each in choices if each is not None))


def _choices(distribution: Any) -> tuple[Any, ...]:
    values = distribution.get("values") if isinstance(distribution, dict) else None
    return tuple(values) if isinstance(values, list) else ()


def _number(value: Any, key: str, place: StepPlace, context: Context) -> float | None:
    known = known_value(value, key, place, context)
    if known != value and isinstance(known, str):  # the value of an input
        with contextlib.suppress(ValueError):
            known = float(known)
    is_number = isinstance(known, (int, float)) and not isinstance(known, bool)
    return float(known) if is_number and math.isfinite(known) else None


def _sampling(given: Any, place: StepPlace, context: Context) -> Sampling:
    """Return the sampling of the search space. given: the name of an algorithm, or its settings"""
    settings = given if isinstance(given, dict) else {"type": given}
    seed = integer(settings.get("seed"), "sampling_algorithm.seed", place, context)
    rule = str(known_value(settings.get("rule"), "sampling_algorithm.rule", place, context) or "random").lower()
    base = known_value(settings.get("logbase"), "sampling_algorithm.logbase", place, context)
    number = math.e if base in (None, "e") else _number(base, "", place, context)
    if number is None or number <= 1:
        context.problems.append(Problem(place.key("sampling_algorithm.logbase"), repr(base), "a number above 1, or e"))
    return Sampling(str(settings.get("type") or "random").lower(), rule, seed or 0, number or math.e)


def _early_termination(given: Any, place: StepPlace, context: Context) -> EarlyTermination | None:
    if given is None:
        return None
    settings = given if isinstance(given, dict) else {"policy_type": given}
    # Requests have BANDIT or MedianStopping.
    written = str(settings.get("policy_type") or settings.get("type"))
    policy = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", written).lower()
    if policy not in ("bandit", "median_stopping", "truncation_selection"):
        expected = "bandit, median_stopping or truncation_selection"
        context.problems.append(Problem(place.key("early_termination"), repr(policy), expected))
        return None

    def whole_number(key: str) -> int:
        return integer(settings.get(key), f"early_termination.{key}", place, context) or 0

    return EarlyTermination(
        policy,
        whole_number("evaluation_interval") or 1,  # azure-ai-ml's default for bandit is 0
        whole_number("delay_evaluation"),
        _number(settings.get("slack_factor"), "early_termination.slack_factor", place, context) or None,
        _number(settings.get("slack_amount"), "early_termination.slack_amount", place, context) or None,
        whole_number("truncation_percentage"),
    )
