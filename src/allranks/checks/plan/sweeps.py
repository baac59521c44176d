"""Check sweeps: the search space, how it is sampled, limits, and the policy that stops trials."""

from __future__ import annotations

import math
from collections.abc import Iterator

from allranks.checks.plan.scope import Scope
from allranks.errors import Problem, Rule
from allranks.plan import literals
from allranks.plan.graph import Sweep
from allranks.plan.literals import meant, one_of
from allranks.plan.ports import Input
from allranks.plan.sweep import DISTRIBUTIONS, MOST_TRIALS, EarlyTermination, Parameter, value_of

SWEEP = Rule.error(
    "sweep",
    "A sweep has no parameter, an impossible range, limit or policy, or an algorithm that cannot sample its "
    "distributions.",
    'Microsoft Learn, "Hyperparameter tuning a model (v2)"; azure-ai-ml checks none of these',
    "correct the sweep",
)
UNREAD = Rule.warning(
    "unread-parameter",
    "The trial of a sweep does not read a parameter of the search space: its component has no such input, and its "
    "command does not contain ${{search_space.NAME}}. A program may still read the variable AZUREML_SWEEP_NAME.",
    "azure-ai-ml, `entities/_job/sweep/sweep_job.py`, SweepJob, which sends the parameter",
    "name it as the trial does",
)

_OF_ALGORITHM = {"grid": ("choice",), "bayesian": ("choice", "uniform", "quniform")}
"""The distributions that an algorithm samples, if not all of them."""


def sweep(scope: Scope, node: Sweep) -> Iterator[Problem]:
    """Yield the problems of a sweep itself. Its trial is checked like any other step."""
    if not node.search_space:
        yield Problem(scope.key(node, "search_space"), "it has no parameter", "at least one", "add a parameter")
    if not node.metric:
        yield Problem(
            scope.key(node, "objective.primary_metric"), "it is empty", "the name of a metric that trials log"
        )
    allowed = _OF_ALGORITHM.get(node.sampling.algorithm, tuple(DISTRIBUTIONS))
    ports = {port.name: port for port in node.body.inputs}
    for parameter in node.search_space:
        where = scope.key(node, f"search_space.{parameter.name}")
        if impossible := _impossible(parameter, node.sampling.base):
            yield Problem(where, *impossible)
        if parameter.distribution not in allowed:
            found = f"{parameter.distribution}, which {node.sampling.algorithm} sampling does not support"
            yield Problem(where, found, one_of(allowed, ""), "use one of these, or set sampling_algorithm: random")
        elif parameter.name not in ports:
            expected = f"an input of its component, or ${{{{search_space.{parameter.name}}}}} in its command"
            fix = meant(parameter.name, ports.keys() - node.sampled)
            yield UNREAD.problem(where, f"the trial does not read {parameter.name}", expected, fix)
        elif not impossible:
            yield from _unfit(where, node, parameter, ports[parameter.name])
    limits = node.limits
    for key, number in (("max_total_trials", limits.total), ("max_concurrent_trials", limits.concurrent)):
        if number is not None and not 1 <= number <= MOST_TRIALS:
            yield Problem(scope.key(node, f"limits.{key}"), str(number), f"1 to {MOST_TRIALS}")
    if limits.timeout is not None and limits.timeout <= 0:
        yield Problem(scope.key(node, "limits.timeout"), f"{limits.timeout:g}", "more than 0 seconds")
    if node.early_termination is not None:
        yield from _policy(scope.key(node, "early_termination"), node.early_termination)


def _impossible(parameter: Parameter, base: float) -> tuple[str, str] | None:
    """Return what is impossible about a distribution, and what is expected; None if all of it is possible."""
    kind = parameter.distribution
    if kind == "choice":
        return None if parameter.choices else ("the choice has no values", "at least one value")
    given = dict(zip(DISTRIBUTIONS[kind], parameter.numbers, strict=True))
    missing = [name for name, number in given.items() if number is None]
    if missing:
        return f"{', '.join(missing)} of {kind} is missing", "a finite number for each"
    numbers = {name: number for name, number in given.items() if number is not None}
    for name in ("sigma", "q", "upper"):
        if numbers.get(name, 1.0) <= 0:
            return f"{name} is {numbers[name]:g}", "more than 0"
    low, high = numbers.get("min_value", -math.inf), numbers.get("max_value", math.inf)
    if low >= high:
        return f"min_value {low:g} is not below max_value {high:g}", "a range"
    try:
        value_of(parameter, 1.0, base)
    except OverflowError:
        most = max(numbers.values())
        return f"values up to exp({most:g}), which no number can hold", "exponents: exp(min_value) to exp(max_value)"
    return None


def _unfit(where: str, node: Sweep, parameter: Parameter, port: Input) -> Iterator[Problem]:
    """Yield the first value of a parameter that its input does not take."""
    # A normal distribution has no ends, and which of its values a trial gets is not known.
    units = (0.5,) if "normal" in parameter.distribution else (0.0, 0.37, 1.0)
    sampled = [value_of(parameter, unit, node.sampling.base) for unit in units]
    values = [each.value for each in parameter.choices] or sampled
    found = (list(literals.wrong(where, port, value, f"change {parameter.name}")) for value in values)
    yield from next(filter(None, found), [])


def _policy(where: str, policy: EarlyTermination) -> Iterator[Problem]:
    if policy.interval < 1 or policy.delay < 0:
        found = f"evaluation_interval {policy.interval}, delay_evaluation {policy.delay}"
        yield Problem(where, found, "an interval of at least 1, and a delay of at least 0")
    if policy.policy == "truncation_selection" and not 1 <= policy.percentage <= 99:
        yield Problem(where, f"truncation_percentage is {policy.percentage}", "1 to 99")
    slacks = [slack for slack in (policy.slack_factor, policy.slack_amount) if slack is not None]
    if policy.policy == "bandit" and (len(slacks) != 1 or slacks[0] <= 0):
        given = f"slack_factor {policy.slack_factor}, slack_amount {policy.slack_amount}"
        yield Problem(where, given, "one of the two, more than 0")
