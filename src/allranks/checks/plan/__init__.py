"""Check a plan before it runs, in particular for mistakes that azure-ai-ml accepts.

The functions take the scope of a graph, and a node or a port in it, so that they apply at any depth.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

from allranks.checks import Findings, Table, apply
from allranks.checks.plan import bindings, control_flow, data, launchers, settings, steps
from allranks.checks.plan.scope import Scope, of_plan
from allranks.errors import Level, Problem
from allranks.plan.graph import Condition, DoWhile, Node, ParallelFor, Pipeline, Plan, StandIn, Step, Sweep
from allranks.sdk.suppressions import Ignored, ignores, of_file, remaining
from allranks.sdk.yaml_lines import line_of, with_key_lines

OF_GRAPHS: Table = ((bindings.graph_names, "name"),)
AFTER_NODES: Table = ((control_flow.cycles, "cycle"), (bindings.bound_outputs, "binding"))
OF_LOOPS: dict[type, Table] = {
    Condition: ((control_flow.condition, "control-flow"),),
    DoWhile: ((control_flow.do_while, "control-flow"),),
    ParallelFor: ((control_flow.parallel_for, "control-flow"),),
    Sweep: ((control_flow.sweep, "sweep"),),
}
OF_NODES: Table = ((bindings.port_names, "name"),)
OF_STAND_INS: Table = ((steps.not_run_here, "not-run-here"),)
OF_STEPS: Table = (
    (bindings.variables, "name"),
    (steps.command, "command"),
    (steps.quotes, "command"),
    (steps.parallel, "parallel"),
    (steps.layout, "layout"),
    (steps.requirement, "requirement"),
    (steps.dropped_environment, "ignored-environment"),
    (steps.inline_environment, "dockerfile-missing"),
    (steps.ignored_variables, "ignored-variables"),
)
"""The place of a finding in a step is its key, such as `command`."""
OF_KEYS: Table = (
    (steps.misspelt_references, "misspelt-reference"),
    (launchers.nested, "nested-launcher"),
    (launchers.instances_apart, "instances-apart"),
    (launchers.expanded_once, "rank-expanded-once"),
    (launchers.mpi_variables, "mpi-variable"),
    (launchers.rank_variables, "rank-variable"),
    (launchers.option_lines, "option-line"),
    (launchers.line_ends, "line-ends"),
    (settings.conda, "conda-dependencies"),
    (settings.loader_workers, "loader-workers"),
    (settings.bound_variables, "variable-binding"),
    (settings.moving_environment, "latest-image"),
    (settings.spot, "spot-without-checkpoints"),
    (settings.size, "size"),
)
"""Common mistakes of a step, which azure-ai-ml and Azure ML accept. The place of each is its key."""
OF_TEXTS: Table = ((steps.misspelt_bindings, "misspelt-reference"), (bindings.lost_value, "lost-value"))
OF_BINDINGS: Table = ((bindings.binding, "binding"),)
OF_VALUES: Table = ((bindings.value_of_input, "value"), (data.input_path, "data"))
"""For inputs with a valid binding. A missing value, or one of a wrong type, has no range to check."""
OF_OUTPUTS: Table = ((data.output_path, "data"),)
OF_OWN_INPUTS: Table = ((bindings.lost_value, "lost-value"), (bindings.own_value, "value"), (data.input_path, "data"))
OF_PLANS: Table = ((data.written_twice, "data"),)


def findings(plan: Plan, *, here: bool = True, today: date | None = None) -> Findings:
    """Return the findings that no comment ignores.

    here:  whether the plan will run on this machine, which must then be able to read the data
    today: the date for which to check whether sizes are retired
    """
    scope = of_plan(plan, here=here, today=today)
    of_inputs = (problem for port in plan.graph.inputs for problem in apply(OF_OWN_INPUTS, scope, None, port))
    found = [*plan.findings, *of_inputs, *_check_graph(scope, cache(of_file)), *apply(OF_PLANS, plan)]
    if any(each.code == "file-fails" and each.level is Level.MACHINE for each in plan.findings):
        # The skipped statements of the notebook may create the data.
        found = [replace(each, level=Level.MACHINE) if each.code == "missing-data" else each for each in found]
    return Findings(settings.joined(remaining(with_key_lines(found, plan.source))))


def _check_graph(scope: Scope, ignored_in: Callable[[str], Ignored]) -> Iterator[Problem]:
    """Yield the findings in a graph. ignored_in: returns what the comments of a component's file ignore"""
    yield from apply(OF_GRAPHS, scope)
    for node in scope.graph.nodes:
        yield from _check_node(scope, node, ignored_in)
    yield from apply(AFTER_NODES, scope)
    for output in scope.graph.outputs:
        yield from apply(OF_OUTPUTS, scope, None, output)


def _check_node(scope: Scope, node: Node, ignored_in: Callable[[str], Ignored]) -> Iterator[Problem]:
    """Yield the findings in a node at any depth."""
    if isinstance(node, (Condition, DoWhile, ParallelFor, Sweep)):
        yield from apply(OF_LOOPS[type(node)], scope, node)
        if not isinstance(node, Condition):
            supplied = control_flow.supplied(node) if isinstance(node, ParallelFor) else frozenset[str]()
            supplied = node.sampled if isinstance(node, Sweep) else supplied
            yield from _check_node(replace(scope, supplied=supplied), node.body, ignored_in)
        return
    yield from apply(OF_NODES, scope, node)
    if isinstance(node, StandIn):
        yield from apply(OF_STAND_INS, scope, node)
    if isinstance(node, Step):
        keys = (each for each in apply(OF_KEYS, scope, node) if not _is_ignored_by_component(node, each, ignored_in))
        for problem in (*apply(OF_STEPS, scope, node), *keys):
            yield replace(problem, where=scope.key(node, problem.where))
    for port in node.inputs:
        yield from apply(OF_TEXTS, scope, node, port)
        if port.name not in scope.supplied:
            yield from list(apply(OF_BINDINGS, scope, node, port)) or apply(OF_VALUES, scope, node, port)
    for output in node.outputs:
        yield from apply(OF_OUTPUTS, scope, node, output)
    if isinstance(node, Pipeline):
        yield from _check_graph(scope.within(node, f"{scope.path}{node.name}"), ignored_in)


def _is_ignored_by_component(step: Step, problem: Problem, ignored_in: Callable[[str], Ignored]) -> bool:
    """Return whether a comment in the component's file ignores a problem, by the line of its key."""
    ignored = ignored_in(step.spec) if step.spec.endswith((".yaml", ".yml")) else {}
    return bool(ignored) and ignores(ignored, problem.rule, line_of(Path(step.spec), *problem.where.split(".")))
