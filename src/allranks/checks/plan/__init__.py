"""Check a plan before it runs, above all for mistakes that azure-ai-ml accepts.

Each rule is a function of the scope of a graph, and of a node or a port in it, so that it applies at any depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

from allranks.checks import Findings, Row, rules_of
from allranks.checks.plan import bindings, control_flow, data, launchers, mini_batches, settings, steps
from allranks.checks.plan.scope import Scope, of_plan
from allranks.errors import Level, Problem, Rule
from allranks.plan import literals
from allranks.plan.graph import Condition, DoWhile, Node, ParallelFor, Pipeline, Plan, StandIn, Step, Sweep
from allranks.sdk import rules
from allranks.sdk.suppressions import Suppressions
from allranks.sdk.yaml_lines import line_of, with_key_lines

SDK = Rule.named("azure-ai-ml")

OF_GRAPHS = (Row(bindings.graph_names, bindings.NAMES),)
AFTER_NODES = (
    Row(control_flow.cycles, control_flow.CYCLE),
    Row(bindings.bound_outputs, bindings.BINDING, bindings.DANGLING),
)
OF_LOOPS = {
    Condition: Row(control_flow.condition, control_flow.CONTROL_FLOW),
    DoWhile: Row(control_flow.do_while, control_flow.CONTROL_FLOW),
    ParallelFor: Row(control_flow.parallel_for, control_flow.CONTROL_FLOW),
    Sweep: Row(control_flow.sweep, control_flow.SWEEP, control_flow.UNREAD),
}
OF_NODES = (Row(bindings.port_names, bindings.NAMES),)
OF_STAND_INS = (Row(steps.not_run_here, steps.NOT_RUN_HERE),)
OF_STEPS = (
    Row(bindings.variables, bindings.NAMES),
    Row(steps.command, steps.COMMAND),
    Row(steps.quotes, steps.COMMAND),
    Row(mini_batches.parallel, mini_batches.PARALLEL),
    Row(steps.layout, steps.LAYOUT),
    Row(steps.requirement, steps.REQUIREMENT),
    Row(steps.dropped_environment, steps.DROPPED_ENVIRONMENT),
    Row(steps.inline_environment, steps.DOCKERFILE_MISSING),
    Row(steps.ignored_variables, steps.IGNORED_VARIABLES),
)
OF_KEYS = (
    Row(steps.misspelt_references, steps.MISSPELT_REFERENCE),
    Row(launchers.nested, launchers.NESTED, launchers.DEEPSPEED),
    Row(launchers.instances_apart, launchers.INSTANCES_APART),
    Row(launchers.expanded_once, launchers.LOCAL_RANK),
    Row(launchers.mpi_variables, launchers.MPI_VARIABLE),
    Row(launchers.rank_variables, launchers.RANK_VARIABLE),
    Row(launchers.option_lines, launchers.OPTION_LINE),
    Row(launchers.line_ends, launchers.LINE_ENDS),
    Row(settings.conda, settings.CONDA),
    Row(settings.loader_workers, settings.LOADER_WORKERS),
    Row(settings.bound_variables, settings.VARIABLE_BINDING),
    Row(settings.moving_environment, settings.IMAGE, settings.LABEL),
    Row(settings.spot, settings.SPOT),
    Row(settings.size, settings.SIZE, settings.PROCESSES, settings.SHARED_MEMORY),
)
"""Common mistakes of a step, which azure-ai-ml and Azure ML accept. The place of each is its key, such as `command`."""
OF_TEXTS = (Row(steps.misspelt_bindings, steps.MISSPELT_REFERENCE), Row(bindings.lost_value, bindings.LOST_VALUE))
OF_BINDINGS = (Row(bindings.binding, bindings.BINDING, bindings.DANGLING, bindings.INTEGER),)
OF_VALUES = (Row(bindings.value_of_input, *literals.RULES), Row(data.input_path, data.DATA, data.OTHER_KIND))
"""For an input whose binding is right. A missing value, or one of a wrong type, has no range to check."""
OF_OUTPUTS = (Row(data.output_path, data.DATA, data.UNMAPPED_OUTPUT),)
OF_OWN_INPUTS = (
    Row(bindings.lost_value, bindings.LOST_VALUE),
    Row(bindings.own_value, *literals.RULES),
    Row(data.input_path, data.DATA, data.OTHER_KIND),
)
OF_PLANS = (Row(data.written_twice, data.DATA),)


def catalogue() -> tuple[Rule, ...]:
    """Return every rule about pipelines and jobs."""
    of_nodes = (OF_NODES, OF_STAND_INS, OF_STEPS, OF_KEYS, OF_TEXTS, OF_BINDINGS, OF_VALUES, OF_OUTPUTS)
    of_graphs = (OF_GRAPHS, AFTER_NODES, OF_LOOPS.values(), OF_OWN_INPUTS, OF_PLANS)
    return (SDK, *rules.RULES, *rules_of(*of_graphs, *of_nodes))


def check(plan: Plan, *, here: bool = True) -> list[Problem]:
    """Return what prevents the plan from running: problems of the pipeline's inputs, of each node in order, of cycles,
    of the outputs. here: whether the plan will run on this machine, which must then be able to read the data."""
    found = findings(plan, here=here)
    return [*found.errors, *found.machine]


def warnings(plan: Plan, today: date | None = None) -> list[Problem]:
    """Return problems that do not prevent a run but are probably mistakes, here or on the sizes that steps name."""
    return list(findings(plan, today=today).warnings)


def findings(plan: Plan, *, here: bool = True, today: date | None = None) -> Findings:
    """Return what the rules find and no comment ignores. Only the plan is checked, and whether local data exists.

    here:  whether the plan will run on this machine, which must then be able to read the data
    today: the date, on which sizes are retired
    """
    scope, suppressions = of_plan(plan, here=here, today=today), Suppressions()
    of_inputs = (problem for port in plan.graph.inputs for problem in _apply(OF_OWN_INPUTS, scope, None, port))
    found = [*plan.findings, *of_inputs, *_of_graph(scope, suppressions), *_apply(OF_PLANS, plan)]
    if any(each.code == "file-fails" and each.level is Level.MACHINE for each in plan.findings):
        # The skipped statements of the notebook may make the data.
        found = [replace(each, level=Level.MACHINE) if each.code == "missing-data" else each for each in found]
    return Findings(settings.joined(suppressions.remaining(with_key_lines(found, plan.source))))


def of_keys(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield common mistakes of a step. The place of each is its key only, such as ``command``."""
    return _apply(OF_KEYS, scope, step)


def _apply(table: Iterable[Row], *subject: object) -> Iterator[Problem]:
    return (problem for row in table for problem in row(*subject))


def _of_graph(scope: Scope, suppressions: Suppressions) -> Iterator[Problem]:
    yield from _apply(OF_GRAPHS, scope)
    for node in scope.graph.nodes:
        yield from _of_node(scope, node, suppressions)
    yield from _apply(AFTER_NODES, scope)
    for output in scope.graph.outputs:
        yield from _apply(OF_OUTPUTS, scope, None, output)


def _of_node(scope: Scope, node: Node, suppressions: Suppressions) -> Iterator[Problem]:
    """Yield the findings in a node at any depth."""
    if isinstance(node, (Condition, DoWhile, ParallelFor, Sweep)):
        yield from OF_LOOPS[type(node)](scope, node)
        if not isinstance(node, Condition):
            supplied = control_flow.supplied(node) if isinstance(node, ParallelFor) else frozenset[str]()
            supplied = node.sampled if isinstance(node, Sweep) else supplied
            yield from _of_node(replace(scope, supplied=supplied), node.body, suppressions)
        return
    yield from _apply(OF_NODES, scope, node)
    if isinstance(node, StandIn):
        yield from _apply(OF_STAND_INS, scope, node)
    if isinstance(node, Step):
        yield from _apply(OF_STEPS, scope, node)
        for problem in of_keys(scope, node):
            if not _is_ignored_by_component(node, problem, suppressions):
                yield replace(problem, where=scope.key(node, problem.where))
    for port in node.inputs:
        yield from _apply(OF_TEXTS, scope, node, port)
        if port.name not in scope.supplied:
            yield from list(_apply(OF_BINDINGS, scope, node, port)) or _apply(OF_VALUES, scope, node, port)
    for output in node.outputs:
        yield from _apply(OF_OUTPUTS, scope, node, output)
    if isinstance(node, Pipeline):
        yield from _of_graph(scope.within(node, f"{scope.path}{node.name}"), suppressions)


def _is_ignored_by_component(step: Step, problem: Problem, suppressions: Suppressions) -> bool:
    """Return whether a comment in the component's file ignores a problem, at the key that is its place."""
    if not step.spec.endswith((".yaml", ".yml")):
        return False
    comments = suppressions.of(step.spec)
    if not comments.everywhere and not comments.by_line:
        return False
    return comments.ignore(problem.rule, line_of(Path(step.spec), *problem.where.split(".")))
