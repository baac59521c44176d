"""Print what a run would do: the plan, its steps and their commands, each rank's environment, and the uploads."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from allranks.checks.plan import findings
from allranks.cli.console import console as standard_output
from allranks.cli.console import print_machine, print_warnings
from allranks.cli.views.uploads import print_uploads, uploads_json
from allranks.contract.launch import Process
from allranks.errors import raise_any
from allranks.history.formatting import layout
from allranks.local import capacity, environments, interpreters, preview, requirements
from allranks.local.options import Options
from allranks.local.preview import StepPreview
from allranks.local.selection import Mode, Modes, modes_of
from allranks.plan import codec
from allranks.plan.graph import Condition, DoWhile, Node, ParallelFor, Plan, StandIn, Step, Sweep
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output, Path, Value
from allranks.plan.ports import Text as BoundText
from allranks.plan.secrets import shown
from allranks.plan.walk import steps, walk
from allranks.sdk.uploads import Upload
from allranks.text import NOTHING, count, duration, plain
from allranks.workspace import Workspace

_LONG = 24
"""Length above which the values of a variable are printed below each other."""

_NOT_PREVIEWED = StepPreview("", ())

_MODES = {
    Mode.RUN: "run, or reuse a result",
    Mode.FRESH: "run",
    Mode.REUSE: "reuse an earlier result",
    Mode.EXCLUDED: "do not run",
}


def print_dry_run(
    read: Callable[[FilePath], tuple[Plan, list[Upload]]], workspace: Workspace, options: Options, as_json: bool
) -> None:
    """Print a plan without starting anything. Raise InputError if it cannot run on any machine.

    read: returns the plan, with its code copied to a folder, and what is uploaded
    """
    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        plan, uploads = read(FilePath(snapshots))
        plan, differences = environments.with_interpreters(plan, options.environment, makes=False)
        modes = modes_of(plan.graph, options.selection)
        found = findings(plan)
        problems = (*found.errors, *found.machine)
        lacking = requirements.machine_problems(plan, is_possible=not problems)
    raise_any(problems)
    plan = codec.loads(json.dumps(shown(json.loads(codec.dumps(plan)))))  # without secrets
    kind = preview.kind_of(options.instances)
    raise_any(requirements.instance_problems(plan, options, kind))
    previews = preview.previews(plan, workspace, kind)
    if as_json:
        print(plan_json(plan, previews, uploads))
    else:
        out = standard_output()
        print_plan(out, plan, previews)
        print_uploads(out, uploads)
        if options.selection:
            _print_selection(out, plan, modes)
    print_warnings([*findings(plan).warnings, *capacity.warnings(plan), *differences])
    print_machine(lacking)


def _print_selection(console: Console, plan: Plan, modes: Modes) -> None:
    width = max(map(len, _MODES.values()))
    for mode, words in _MODES.items():
        names = [plain(path) for path, _ in steps(plan.graph) if modes.at(path) is mode]
        if names:
            console.print(Text.assemble((f"  {words:<{width}}  ", "bright_black"), ", ".join(names)), soft_wrap=True)


def print_plan(console: Console, plan: Plan, previews: Mapping[str, StepPreview]) -> None:
    """Print the plan with what each step would start. previews: by the path of a step"""
    graph = plan.graph
    console.print(_heading(plan), soft_wrap=True)
    _print_ports(console, "inputs", [(port.name, port.type, expression(port.value)) for port in graph.inputs])
    for place, (path, node, around) in enumerate(walk(graph), start=1):
        console.print()
        what = step_layout(node) if isinstance(node, Step) else _KINDS[node.kind]
        title = Text.assemble((f"{place}  ", "bright_black"), (plain(path), "bold"), "  ", (what, "blue"))
        console.print(Rule(title, align="left", style="bright_black"))
        preview = previews.get(path, _NOT_PREVIEWED)
        facts = {"defined in": str(node.location or ""), "after": ", ".join(around.needs(node))}
        own = _facts_of_step(node, preview, plan.source, facts) if isinstance(node, Step) else {**facts, **_facts(node)}
        for name, value in own.items():
            if value:
                _print_fact(console, name, plain(value))
        _print_ports(console, "inputs", [(port.name, _port_type(port), expression(port.value)) for port in node.inputs])
        _print_ports(console, "outputs", [(port.name, _port_type(port), port.path or "") for port in node.outputs])
        if isinstance(node, Step):
            set_by_step = [(name, "", _variable(value)) for name, value in node.environment_variables.items()]
            _print_ports(console, "variables", set_by_step)
        if preview.ranks:
            _print_variables(console, rank_variables(preview.ranks))
    if graph.outputs:
        console.print()
    outputs = [(port.name, port.type, f"{expression(port.source)}  {port.path or ''}") for port in graph.outputs]
    _print_ports(console, "outputs", outputs)


def plan_json(plan: Plan, previews: Mapping[str, StepPreview], uploads: Sequence[Upload] = ()) -> str:
    """Return the plan as JSON. A binding is written as on Azure ML: ``${{parent.jobs.train.outputs.model}}``.

    previews: by the path of a step
    uploads:  the code and build contexts that are uploaded
    """
    graph = plan.graph
    return json.dumps(
        {
            "name": plan.name,
            "display_name": plan.display_name,
            "description": plan.description,
            "experiment": plan.experiment,
            "source": plan.source,
            "continue_on_step_failure": plan.continue_on_step_failure,
            "force_rerun": plan.force_rerun,
            "inputs": [_input(port) for port in graph.inputs],
            "outputs": [
                {"name": output.name, "type": output.type, "source": expression(output.source), "path": output.path}
                for output in graph.outputs
            ],
            "steps": [
                {
                    "name": path,
                    "kind": node.kind,
                    "location": str(node.location) if node.location else None,
                    "needs": list(around.needs(node)),
                    **_properties(node, previews.get(path, _NOT_PREVIEWED), plan.source),
                    "inputs": [_input(port) for port in node.inputs],
                    "outputs": [
                        {"name": port.name, "type": port.type, "mode": port.mode, "path": port.path}
                        for port in node.outputs
                    ],
                }
                for path, node, around in walk(graph)
            ],
            "uploads": uploads_json(uploads),
        },
        indent=2,
    )


def expression(value: Value | None) -> str:
    """Return the value of a port as a user would write it, or a dash if it has none."""
    if value is None:
        return NOTHING
    if isinstance(value, Literal):
        return str(value.value).lower() if isinstance(value.value, bool) else plain(str(value.value))
    if isinstance(value, Path):
        return plain(value.path)
    if isinstance(value, GraphInput):
        return f"${{{{parent.inputs.{value.name}}}}}"
    if isinstance(value, NodeOutput):
        return f"${{{{parent.jobs.{value.node}.outputs.{value.name}}}}}"
    return "".join(part if isinstance(part, str) else expression(part) for part in value.parts)


def step_layout(step: Step) -> str:
    processes = getattr(step.distribution, "process_count_per_instance", None) or 1
    return layout(step.distribution.type, step.instance_count, processes)


def _heading(plan: Plan) -> Text:
    number = sum(1 for _ in steps(plan.graph))
    heading = Text.assemble((plain(plan.display_name or plan.name), "bold"), f"  {count(number, 'step')}")
    for part in (plan.source, plan.description):
        if part:
            heading.append(f"\n{plain(part)}", style="bright_black")
    return heading


_KINDS = {
    "pipeline": "pipeline component",
    "condition": "if_else",
    "do_while": "do_while loop",
    "parallel_for": "parallel_for loop",
    "sweep": "sweep",
    "stand_in": "not run here",
}


def _facts(node: Node) -> dict[str, str]:
    """Return the properties of a control-flow node."""
    if isinstance(node, Condition):
        return {
            "condition": expression(node.condition),
            "if true": ", ".join(node.then),
            "if false": ", ".join(node.otherwise),
        }
    if isinstance(node, DoWhile):
        return {
            "repeats while": node.condition or "",
            "at most": count(node.limit, "iteration"),
            "next input": ", ".join(f"{name} = {output}" for output, name in node.feedback),
        }
    if isinstance(node, ParallelFor):
        known = isinstance(node.items, tuple)
        items = ", ".join(item.name for item in node.items) if known else expression(node.items)  # type: ignore
        return {"items": items, "at once": str(node.max_concurrency or "")}
    if isinstance(node, Sweep):
        limits, policy = node.limits, node.early_termination
        stops = f"{policy.policy}, every {count(policy.interval, 'interval')} from {policy.delay}" if policy else ""
        return {
            "search space": "\n".join(f"{each.name} = {each}" for each in node.search_space),
            "objective": f"{'maximize' if node.maximize else 'minimize'} {node.metric}",
            "sampling": "sobol" if node.sampling.module == "scipy" else node.sampling.algorithm,
            "at most": count(limits.total, "trial"),
            "at once": str(limits.concurrent or ""),
            "time-out": "" if limits.timeout is None else duration(limits.timeout),
            "stops by": stops,
        }
    if isinstance(node, StandIn):
        return {"folder": node.folder}
    return {"component": " ".join(part for part in (node.component, node.version) if part)}


def _facts_of_step(step: Step, preview: StepPreview, source: str, shared: Mapping[str, str]) -> dict[str, str]:
    return {
        "component": " ".join(part for part in (step.component, step.version) if part),
        **shared,
        "size": step.instance_type,
        "environment": str(step.environment),
        "  here": interpreters.describe(interpreters.find(step.environment, source)),
        "time-out": "" if step.timeout is None else duration(step.timeout),
        "reuse": "" if step.deterministic else "never: the component is not deterministic",
        "mini-batches": str(step.parallel or ""),
        "command": step.command.strip(),
        "  rendered": preview.command.strip() if preview.command != step.command else "",
    }


def _print_fact(console: Console, name: str, value: str) -> None:
    first, *more = value.splitlines()
    text = Text.assemble((f"  {name:<13}", "bright_black"), first)
    for line in more:
        text.append(f"\n{' ' * 15}{line}")
    console.print(text, soft_wrap=True)


def _print_ports(console: Console, title: str, ports: Sequence[tuple[str, str, str]]) -> None:
    names = max((len(plain(name)) for name, _, _ in ports), default=0)
    types = max((len(kind) for _, kind, _ in ports), default=0)
    for place, (name, kind, value) in enumerate(ports):
        line = Text.assemble(
            (f"  {title if place == 0 else '':<13}", "bright_black"),
            (f"{plain(name):<{names}}", "cyan"),
            (f"  {kind:<{types}}" if types else "", "bright_black"),
            f"  {plain(value)}",
        )
        line.rstrip()
        console.print(line, soft_wrap=True)


def _port_type(port: Input | Output) -> str:
    return f"{port.type} {port.mode}".strip()


def _input(port: Input) -> dict[str, Any]:
    value: str | int | float | bool | None = None
    if port.value is not None:
        value = port.value.value if isinstance(port.value, Literal) else expression(port.value)
    return {"name": port.name, "type": port.type, "mode": port.mode, "optional": port.optional, "value": value}


def _variable(value: str | GraphInput | NodeOutput | BoundText) -> str:
    return value if isinstance(value, str) else expression(value)


def _properties(step: Node, preview: StepPreview, source: str) -> dict[str, Any]:
    """Return the properties, for JSON, that only this kind of node has."""
    if not isinstance(step, Step):
        return {name.replace(" ", "_"): value for name, value in _facts(step).items()}
    variables = rank_variables(preview.ranks)
    interpreter = interpreters.find(step.environment, source)
    return {
        "display_name": step.display_name,
        "component": step.component,
        "version": step.version,
        "distribution": step.distribution.type,
        "instance_count": step.instance_count,
        "process_count_per_instance": getattr(step.distribution, "process_count_per_instance", None) or 1,
        "instance_type": step.instance_type,
        "environment": str(step.environment),
        "interpreter": {"path": str(interpreter), "version": interpreters.version_of(interpreter)},
        "environment_variables": {name: _variable(value) for name, value in step.environment_variables.items()},
        "timeout": step.timeout,
        "is_deterministic": step.deterministic,
        **({"parallel": asdict(step.parallel)} if step.parallel else {}),
        "command": step.command,
        "rendered_command": preview.command,
        "shared_variables": dict(variables.shared),
        "ranks": [
            {
                "rank": process.rank,
                "local_rank": process.local_rank,
                "instance_rank": process.instance_rank,
                "role": process.role,
                "variables": {name: own[place] for name, own in variables.own.items() if own[place] is not None},
            }
            for place, process in enumerate(variables.ranks)
        ],
    }


class _RankVariables(NamedTuple):
    """Variables with the same value on all ranks, and the others with one value per rank, None if it is not set."""

    ranks: tuple[Process, ...]
    shared: Mapping[str, str]
    own: Mapping[str, tuple[str | None, ...]]


def rank_variables(environments: Sequence[tuple[Process, Mapping[str, str]]]) -> _RankVariables:
    """Separate shared variables from those that differ. With one rank, all are shared."""
    names = dict.fromkeys(name for _, environment in environments for name in environment)
    values = {name: tuple(environment.get(name) for _, environment in environments) for name in names}
    return _RankVariables(
        ranks=tuple(process for process, _ in environments),
        shared={name: own[0] for name, own in values.items() if own[0] is not None and len(set(own)) == 1},
        own={name: own for name, own in values.items() if len(set(own)) > 1},
    )


def _print_variables(console: Console, variables: _RankVariables) -> None:
    ranks = variables.ranks
    title = "environment of its one process" if len(ranks) == 1 else f"environment of all {len(ranks)} ranks"
    _print_values(console, title, {name: (value,) for name, value in sorted(variables.shared.items())})
    _print_values(console, "and of each rank", variables.own)


def _print_values(console: Console, title: str, values: Mapping[str, Sequence[str | None]]) -> None:
    names = max((len(name) for name in values), default=0)
    if values:
        console.print(Text(f"  {title}", style="bright_black"))
    for name, own in values.items():
        separator = "  " if all(len(value or NOTHING) <= _LONG for value in own) else f"\n{' ' * (names + 6)}"
        shown = separator.join(NOTHING if value is None else plain(value) for value in own)
        console.print(Text.assemble("    ", (f"{name:<{names}}", "cyan"), f"  {shown}"), soft_wrap=True)
