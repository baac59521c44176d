"""Check a plan before it runs, above all for mistakes that azure-ai-ml accepts.

Every rule checks one graph in its scope, so that it applies at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from allranks.checks.plan import (
    bindings,
    commands,
    control_flow,
    hardware,
    layouts,
    mistakes,
    names,
    paths,
    requirements,
    tolerated,
    values,
)
from allranks.checks.plan.ignore import Ignored
from allranks.checks.plan.rule import Level, Rule, rules_in
from allranks.checks.plan.scope import Scope, of_plan
from allranks.errors import Problem
from allranks.plan.exact_places import exact
from allranks.plan.graph import Condition, DoWhile, Node, ParallelFor, Pipeline, Plan, Step

__all__ = ["CATALOGUE", "SDK", "advice", "check", "warnings"]

SDK = Rule(
    "azure-ai-ml",
    Level.ERROR,
    "azure-ai-ml itself refuses the file.",
    "azure-ai-ml, its schemas and their validation, which `az ml` runs too",
    "correct the file",
)

_OF_STEPS = (names, bindings, values, commands, paths, layouts, requirements, control_flow)

CATALOGUE: tuple[Rule, ...] = (
    SDK,
    *rules_in((*_OF_STEPS, tolerated, hardware)),
    *mistakes.RULES,
)
"""Every rule about pipelines and jobs, for docs/checks.md."""


def check(plan: Plan, *, here: bool = True) -> list[Problem]:
    """Return every problem: those of the pipeline's inputs, of each node in order, of cycles, of the outputs.

    here: whether the plan will run on this machine, which must then be able to read the data

    Nothing is changed. Only the plan is checked, and whether local data exists.
    """
    scope = of_plan(plan)
    twice = paths.DATA.mark(paths.written_twice(plan))
    problems = [*_of_own_inputs(scope, here), *_of_graph(scope, here), *twice]
    return exact(problems, plan.source)


def warnings(plan: Plan, today: date) -> list[Problem]:
    """Return problems that do not prevent a run but are probably mistakes, here or on the sizes that steps name."""
    return _of_level(Level.WARNING, plan, today)


def advice(plan: Plan, today: date) -> list[Problem]:
    """Return what could be better: advice, in the style of this project."""
    return _of_level(Level.ADVICE, plan, today)


def _of_level(level: Level, plan: Plan, today: date) -> list[Problem]:
    codes = {rule.code for rule in CATALOGUE if rule.level is level}
    ignored = Ignored()
    found = (problem for problem in _warnings(of_plan(plan), today, ignored) if problem.rule in codes)
    return mistakes.latest.joined(ignored.remaining(exact(found, plan.source)))


def _of_own_inputs(scope: Scope, here: bool) -> Iterator[Problem]:
    for port in scope.graph.inputs:
        yield from values.VALUES.mark(values.of_pipeline_input(scope, port))
        yield from paths.DATA.mark(paths.of_pipeline_input(scope, port, here))


def _of_graph(scope: Scope, here: bool) -> Iterator[Problem]:
    yield from names.NAMES.mark(names.of_graph(scope))
    for node in scope.graph.nodes:
        yield from _of_node(scope, node, here)
    yield from control_flow.CYCLE.mark(control_flow.of_cycles(scope))
    yield from bindings.BINDING.mark(bindings.of_outputs(scope))
    for output in scope.graph.outputs:
        yield from paths.DATA.mark(paths.of_graph_output(scope, output))


def _of_node(scope: Scope, node: Node, here: bool, supplied: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Yield the problems of a node at any depth. supplied: inputs of the node to which a loop gives values."""
    if isinstance(node, Condition):
        yield from control_flow.CONTROL_FLOW.mark(control_flow.of_condition(scope, node))
        return
    if isinstance(node, DoWhile):
        yield from control_flow.CONTROL_FLOW.mark(control_flow.of_do_while(scope, node))
        yield from _of_node(scope, node.body, here)
        return
    if isinstance(node, ParallelFor):
        yield from control_flow.CONTROL_FLOW.mark(control_flow.of_parallel_for(scope, node, here))
        yield from _of_node(scope, node.body, here, control_flow.supplied(node))
        return
    yield from names.NAMES.mark(names.of_ports(scope, node))
    if isinstance(node, Step):
        yield from names.NAMES.mark(names.of_variables(scope, node))
        yield from commands.COMMAND.mark(commands.of_step(scope, node, supplied))
        yield from commands.COMMAND.mark(commands.of_quotes(scope, node))
        yield from layouts.LAYOUT.mark(layouts.of_step(scope, node))
        yield from requirements.REQUIREMENT.mark(requirements.of_step(scope, node, supplied))
    for port in node.inputs:
        if port.name in supplied:
            continue
        wrong = list(bindings.BINDING.mark(bindings.of_input(scope, node, port)))
        yield from wrong
        if not wrong:
            # A missing value, or one of a wrong type, has no range to check.
            yield from values.VALUES.mark(values.of_input(scope, node, port))
            yield from paths.DATA.mark(paths.of_input(scope, node, port, here))
    for output in node.outputs:
        yield from paths.DATA.mark(paths.of_output(scope, node, output))
    if isinstance(node, Pipeline):
        yield from _of_graph(scope.within(node, f"{scope.path}{node.name}", supplied), here)


def _warnings(scope: Scope, today: date, comments: Ignored) -> Iterator[Problem]:
    for node in scope.graph.nodes:
        inner = node.body if isinstance(node, (DoWhile, ParallelFor)) else node
        if isinstance(inner, Step):
            yield from tolerated.IGNORED.mark(tolerated.of_step(scope, inner))
            yield from mistakes.of_step(scope, inner, comments)
            yield from hardware.of_step(scope, inner, today)
        elif isinstance(inner, Pipeline):
            yield from _warnings(scope.within(inner, f"{scope.path}{inner.name}"), today, comments)
