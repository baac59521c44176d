"""Check conditions, loops and sweeps, and find cycles."""

import math
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from allranks.checks.plan import data
from allranks.checks.plan.bindings import article, dangling, fits
from allranks.checks.plan.scope import Scope
from allranks.errors import Problem, finding
from allranks.plan import literals
from allranks.plan.graph import Condition, DoWhile, ParallelFor, Sweep
from allranks.plan.literals import one_of, suggestion
from allranks.plan.ports import PRIMITIVES, GraphInput, Input, Literal, Path, Value, references
from allranks.plan.sweep import DISTRIBUTIONS, MOST_TRIALS, EarlyTermination, Parameter, value_of

LIMIT = 1000
"""Maximum iterations of a do_while loop (azure-ai-ml's DO_WHILE_MAX_ITERATION)."""


def condition(scope: Scope, node: Condition) -> Iterator[Problem]:
    where = scope.key(node, "condition")
    for reference in references(node.condition):
        missing = list(dangling(scope, where, reference))
        yield from missing
        if missing:
            continue
        kind = scope.type_of(reference)
        if kind not in ("boolean", "string"):
            yield Problem(where, article(kind), "a boolean", "use a boolean output or input")
        elif isinstance(reference, GraphInput) and scope.value(reference) is None:
            yield Problem(where, f"input {reference.name} of {scope.name} has no value", "true or false")
    for key, names in (("true_block", node.then), ("false_block", node.otherwise)):
        for name in names:
            if name not in scope.graph.by_name:
                known = [other.name for other in scope.graph.nodes if other is not node]
                yield Problem(
                    scope.key(node, key), f"there is no step {name}", one_of(known, ""), suggestion(name, known)
                )
    for name in dict.fromkeys(name for name in node.then if name in node.otherwise):
        found = f"{name} is in both blocks, so it would always run"
        yield Problem(scope.of(node), found, "a step in one of the blocks", "remove it from one")


def do_while(scope: Scope, loop: DoWhile) -> Iterator[Problem]:
    """Yield the problems of a do_while loop, without its body, which is checked like any other node."""
    inputs = {port.name: port for port in loop.body.inputs}
    outputs = {port.name: port for port in loop.body.outputs}
    if not 1 <= loop.limit <= LIMIT:
        yield Problem(scope.key(loop, "limits.max_iteration_count"), str(loop.limit), f"1 to {LIMIT}")
    if loop.condition and loop.condition not in outputs:
        found = f"the body {loop.body.name} has no output {loop.condition}"
        fix = suggestion(loop.condition, outputs)
        yield Problem(scope.key(loop, "condition"), found, one_of(outputs, "the body has no outputs"), fix)
    elif loop.condition and outputs[loop.condition].type not in ("boolean", "string"):
        found = f"output {loop.condition} is {article(outputs[loop.condition].type)}"
        yield Problem(scope.key(loop, "condition"), found, "a boolean", "name a boolean output of the body")
    fed: set[str] = set()
    for output, name in loop.feedback:
        where = scope.key(loop, f"mapping.{output}")
        if output not in outputs:
            found = f"the body {loop.body.name} has no output {output}"
            yield Problem(where, found, one_of(outputs, "the body has no outputs"), suggestion(output, outputs))
        elif name not in inputs:
            found = f"the body {loop.body.name} has no input {name}"
            yield Problem(where, found, one_of(inputs, "the body has no inputs"), suggestion(name, inputs))
        elif not fits(outputs[output].type, inputs[name].type):
            found = f"output {output} is {article(outputs[output].type)}, input {name} is {article(inputs[name].type)}"
            yield Problem(where, found, "an output that the input accepts", f"declare {output} as {inputs[name].type}")
        if name in fed:
            yield Problem(where, f"input {name} is fed by two outputs", "one output an input", "remove one of the two")
        fed.add(name)


def supplied(loop: ParallelFor) -> frozenset[str]:
    """Return the inputs of the body that get their value from an item."""
    if not isinstance(loop.items, tuple):
        # The items are unknown before the loop starts, so they may contain any input.
        return frozenset(port.name for port in loop.body.inputs if port.value is None)
    return frozenset(name for item in loop.items for name, _ in item.values)


def parallel_for(scope: Scope, loop: ParallelFor) -> Iterator[Problem]:
    """Yield the problems of a parallel_for loop, without its body, which is checked like any other node."""
    where = scope.key(loop, "items")
    if loop.max_concurrency is not None and loop.max_concurrency < 1:
        found = str(loop.max_concurrency)
        yield Problem(scope.key(loop, "max_concurrency"), found, "at least 1, or none for all at once")
    if not isinstance(loop.items, tuple):
        for reference in references(loop.items):
            yield from dangling(scope, where, reference)
        return
    if not loop.items:
        yield Problem(where, "the list is empty", "at least one item")
        return
    ports = {port.name: port for port in loop.body.inputs}
    expected = {name for name, _ in loop.items[0].values}
    for item in loop.items:
        item_values = dict(item.values)
        if item_values.keys() != expected:
            found = f"item {item.name} has {one_of(item_values, 'no keys').removeprefix('one of ')}"
            keys = f"the keys of the first item: {', '.join(sorted(expected))}"
            yield Problem(where, found, keys, "use the same keys in every item")
        for name, value in item_values.items():
            place = scope.key(loop, f"items.{item.name}.{name}")
            if name in ports:
                yield from _of_item(scope, place, ports[name], value)
            else:
                found = f"the body {loop.body.name} has no input {name}"
                yield Problem(place, found, one_of(ports, "the body has no inputs"), suggestion(name, ports))


def _of_item(scope: Scope, where: str, port: Input, value: Value) -> Iterator[Problem]:
    """Yield the problems of the value that an item has for an input of the body."""
    for reference in references(value):
        yield from dangling(scope, where, reference)
    if isinstance(value, Literal):
        yield from literals.wrong(where, port, value.value, f"change {port.name}")
    elif isinstance(value, Path) and port.type not in PRIMITIVES:
        yield from data.wrong_path(where, port, value, scope.here, "name another path")


def cycles(scope: Scope) -> Iterator[Problem]:
    """Yield one problem for each cycle, at the first of its nodes."""
    nodes = scope.graph.by_name
    places = {name: place for place, name in enumerate(nodes)}
    needs = {name: [other for other in scope.graph.needs(node) if other in nodes] for name, node in nodes.items()}
    while ring := _cycle(needs):
        start = ring.index(min(ring, key=places.__getitem__))
        ring = ring[start:] + ring[:start]
        found = f"steps wait for each other: {' -> '.join((*ring, ring[0]))}"
        expected = "an order in which every step comes after those that it needs"
        yield Problem(scope.of(nodes[ring[0]]), found, expected, f"remove what {ring[0]} needs from {ring[-1]}")
        needs[ring[0]] = []


def _cycle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the names in a cycle: each needs the one before it, and the first one needs the last one. Return [] if
    there is no cycle."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return list(error.args[1][1:])
    return []


_OF_ALGORITHM = {"grid": ("choice",), "bayesian": ("choice", "uniform", "quniform")}
"""The distributions that an algorithm supports, if not all of them."""


def sweep(scope: Scope, node: Sweep) -> Iterator[Problem]:
    """Yield the problems of a sweep, without its trial, which is checked like any other step."""
    if not node.search_space:
        yield Problem(scope.key(node, "search_space"), "it has no parameter", "at least one", "add a parameter")
    if not node.metric:
        yield Problem(
            scope.key(node, "objective.primary_metric"), "it is empty", "the name of a metric that trials log"
        )
    for parameter in node.search_space:
        yield from _of_parameter(scope.key(node, f"search_space.{parameter.name}"), node, parameter)
    limits = node.limits
    for key, number in (("max_total_trials", limits.total), ("max_concurrent_trials", limits.concurrent)):
        if number is not None and not 1 <= number <= MOST_TRIALS:
            yield Problem(scope.key(node, f"limits.{key}"), str(number), f"1 to {MOST_TRIALS}")
    if limits.timeout is not None and limits.timeout <= 0:
        yield Problem(scope.key(node, "limits.timeout"), f"{limits.timeout:g}", "more than 0 seconds")
    if node.early_termination is not None:
        yield from _policy(scope.key(node, "early_termination"), node.early_termination)


def _of_parameter(where: str, node: Sweep, parameter: Parameter) -> Iterator[Problem]:
    ports = {port.name: port for port in node.body.inputs}
    allowed = _OF_ALGORITHM.get(node.sampling.algorithm, tuple(DISTRIBUTIONS))
    if impossible := _impossible(parameter, node.sampling.base):
        yield Problem(where, *impossible)
    if parameter.distribution not in allowed:
        found = f"{parameter.distribution}, which {node.sampling.algorithm} sampling does not support"
        yield Problem(where, found, one_of(allowed, ""), "use one of these, or set sampling_algorithm: random")
    elif parameter.name not in ports:
        expected = f"an input of its component, or ${{{{search_space.{parameter.name}}}}} in its command"
        fix = suggestion(parameter.name, ports.keys() - node.sampled)
        yield finding("unread-parameter", where, f"the trial does not read {parameter.name}", expected, fix)
    elif not impossible:
        yield from _unfit(where, node, parameter, ports[parameter.name])


def _impossible(parameter: Parameter, base: float) -> tuple[str, str] | None:
    """Return the problem of a distribution and the expectation; None if it is valid."""
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
    """Yield the problems of the first value of a parameter that its input does not accept."""
    # A normal distribution is unbounded: its values are not known before the run.
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
