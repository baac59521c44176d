"""Check sweeps: the search space, how it is sampled, limits, and the policy that stops trials."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.checks.plan.scope import Scope
from allranks.errors import Level, Problem, Rule
from allranks.plan import literals
from allranks.plan.graph import Sweep
from allranks.plan.literals import meant, one_of
from allranks.plan.ports import Input
from allranks.plan.sweep import DISTRIBUTIONS, MOST_TRIALS, EarlyTermination, Parameter, value_of

_SOURCE = 'Microsoft Learn, "Hyperparameter tuning a model (v2)"'
SWEEP = Rule(
    "sweep",
    Level.ERROR,
    "A sweep has no parameter, an impossible range, limit or policy, or an algorithm that cannot sample its "
    "distributions.",
    f"{_SOURCE}; azure-ai-ml checks none of these",
    "correct the sweep",
)
UNREAD = Rule(
    "unread-parameter",
    Level.ERROR,
    "The trial of a sweep does not read a parameter of the search space: its component has no such input, and its "
    "command does not contain ${{search_space.NAME}}. A program may still read the variable AZUREML_SWEEP_NAME.",
    "azure-ai-ml, `entities/_job/sweep/sweep_job.py`, SweepJob, which sends the parameter",
    "name it as the trial does",
    accepted_by_sdk=True,
)

BAYESIAN = Rule(
    "bayesian-early-termination",
    Level.WARNING,
    "A sweep with bayesian sampling has a policy that stops trials.",
    'Microsoft Learn, "BayesianParameterSampling Class", Remarks: bayesian sampling does not support early termination',
    "remove early_termination, or set sampling_algorithm: random",
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
        impossible = list(_impossible(where, parameter))
        yield from impossible
        if parameter.distribution not in allowed:
            found = f"{parameter.distribution}, which {node.sampling.algorithm} sampling does not take"
            yield Problem(where, found, one_of(allowed, ""), "use one of these, or set sampling_algorithm: random")
        elif parameter.name not in ports:
            yield _unread(where, node, parameter)
        elif not impossible:
            yield from _unfit(where, node, parameter, ports[parameter.name])
    yield from _limits(scope, node)
    if node.early_termination is not None:
        if node.sampling.algorithm == "bayesian":
            found = f"{node.early_termination.policy}, together with bayesian sampling"
            yield BAYESIAN.problem(scope.key(node, "early_termination"), found)
        yield from _policy(scope.key(node, "early_termination"), node.early_termination)


def _impossible(where: str, parameter: Parameter) -> Iterator[Problem]:
    kind = parameter.distribution
    if kind == "choice":
        if not parameter.choices:
            yield Problem(where, "the choice has no values", "at least one value")
        return
    numbers = dict(zip(DISTRIBUTIONS[kind], parameter.numbers, strict=True))
    missing = [name for name, number in numbers.items() if number is None]
    if missing:
        yield Problem(where, f"{', '.join(missing)} of {kind} is not given", "a finite number for each")
        return
    low, high = numbers.get("min_value"), numbers.get("max_value")
    if low is not None and high is not None and low >= high:
        yield Problem(where, f"min_value {low:g} is not below max_value {high:g}", "a range", "swap or change them")
        return
    for name, least in (("sigma", 0.0), ("q", 0.0), ("upper", 0.0)):
        if (number := numbers.get(name)) is not None and number <= least:
            yield Problem(where, f"{name} is {number:g}", f"more than {least:g}")
            return
    try:
        value_of(parameter, 1.0)
    except OverflowError:
        found = f"values up to exp({high if high is not None else numbers['mu']:g}), which no number can hold"
        yield Problem(where, found, "exponents: the values are exp(min_value) to exp(max_value)")


def _unread(where: str, node: Sweep, parameter: Parameter) -> Problem:
    known = [port.name for port in node.body.inputs if port.name not in {each.name for each in node.search_space}]
    found = f"the trial does not read {parameter.name}"
    expected = f"an input of its component, or ${{{{search_space.{parameter.name}}}}} in its command"
    return UNREAD.problem(where, found, expected, meant(parameter.name, known))


def _unfit(where: str, node: Sweep, parameter: Parameter, port: Input) -> Iterator[Problem]:
    """Yield values of a parameter that its input does not take."""
    # A normal distribution has no ends, and which of its values a trial gets is not known.
    units = (0.5,) if "normal" in parameter.distribution else (0.0, 0.37, 1.0)
    base = node.sampling.base
    values = [each.value for each in parameter.choices] or [value_of(parameter, unit, base) for unit in units]
    for value in values:
        if wrong := list(literals.wrong(where, port, value, f"change {parameter.name}")):
            yield from wrong
            return


def _limits(scope: Scope, node: Sweep) -> Iterator[Problem]:
    counts = {"max_total_trials": node.limits.total, "max_concurrent_trials": node.limits.concurrent}
    for key, number in counts.items():
        if number is not None and not 1 <= number <= MOST_TRIALS:
            yield Problem(scope.key(node, f"limits.{key}"), str(number), f"1 to {MOST_TRIALS}")
    if node.limits.timeout is not None and node.limits.timeout <= 0:
        yield Problem(scope.key(node, "limits.timeout"), f"{node.limits.timeout:g}", "more than 0 seconds")


def _policy(where: str, policy: EarlyTermination) -> Iterator[Problem]:
    if policy.interval < 1 or policy.delay < 0:
        found = f"evaluation_interval {policy.interval}, delay_evaluation {policy.delay}"
        yield Problem(where, found, "an interval of at least 1, and a delay of at least 0")
    if policy.policy == "truncation_selection" and not 1 <= policy.percentage <= 99:
        yield Problem(where, f"truncation_percentage is {policy.percentage}", "1 to 99")
    if policy.policy == "bandit":
        slacks = [slack for slack in (policy.slack_factor, policy.slack_amount) if slack is not None]
        if len(slacks) != 1 or slacks[0] <= 0:
            given = f"slack_factor {policy.slack_factor}, slack_amount {policy.slack_amount}"
            yield Problem(where, given, "one of the two, more than 0")


def names(node: Sweep) -> frozenset[str]:
    """Return the inputs of the trial that get their values from the search space."""
    return frozenset(parameter.name for parameter in node.search_space)
