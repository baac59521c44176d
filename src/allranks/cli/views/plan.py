"""A plan before anything runs: its steps, their commands, and the environment that each rank would have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from allranks.cli.views.rank_variables import print_variables, rank_variables
from allranks.cli.views.uploads import uploads_json
from allranks.contract.process import Process
from allranks.plan.graph import Input, Literal, Output, Path, PipelineInput, Plan, Step, StepOutput, Value
from allranks.runs.formatting import NOTHING, count, duration, layout, plain
from allranks.sdk.uploads import Upload

Environments = Mapping[str, Sequence[tuple[Process, Mapping[str, str]]]]
"""What each rank of each step would be given: step -> (process, its variables)."""

NO_COMMANDS: Mapping[str, str] = MappingProxyType({})


def print_plan(
    console: Console, plan: Plan, environments: Environments, commands: Mapping[str, str] = NO_COMMANDS
) -> None:
    """Prints the plan with the environment of each rank.

    commands: by step, the command with its bindings filled in as far as they are known before the run
    """
    console.print(_heading(plan), soft_wrap=True)
    _print_ports(console, "inputs", [(port.name, port.type, expression(port.value)) for port in plan.inputs])
    for place, step in enumerate(plan.steps, start=1):
        console.print()
        console.print(Rule(_title(place, step), align="left", style="bright_black"))
        _print_step(console, step, commands.get(step.name))
        variables = rank_variables(environments.get(step.name, ()))
        if variables.ranks:
            print_variables(console, variables)
    if plan.outputs:
        console.print()
    outputs = [(port.name, port.type, f"{expression(port.source)}  {port.path or ''}") for port in plan.outputs]
    _print_ports(console, "outputs", outputs)


def plan_json(
    plan: Plan,
    environments: Environments,
    commands: Mapping[str, str] = NO_COMMANDS,
    uploads: Sequence[Upload] = (),
) -> str:
    """The same as JSON; a binding is written as Azure ML writes it, ``${{parent.jobs.train.outputs.model}}``.

    uploads: the code and build contexts that go along
    """
    return json.dumps(
        {
            "name": plan.name,
            "display_name": plan.display_name,
            "description": plan.description,
            "experiment": plan.experiment,
            "source": plan.source,
            "continue_on_step_failure": plan.continue_on_step_failure,
            "force_rerun": plan.force_rerun,
            "inputs": [_input(port) for port in plan.inputs],
            "outputs": [
                {"name": output.name, "type": output.type, "source": expression(output.source), "path": output.path}
                for output in plan.outputs
            ],
            "steps": [_step(step, environments.get(step.name, ()), commands.get(step.name)) for step in plan.steps],
            "uploads": uploads_json(uploads),
        },
        indent=2,
    )


def expression(value: Value | None) -> str:
    """What is bound to a port, as a user would write it. A dash where nothing is."""
    if value is None:
        return NOTHING
    if isinstance(value, Literal):
        return str(value.value).lower() if isinstance(value.value, bool) else plain(str(value.value))
    if isinstance(value, Path):
        return plain(value.path)
    if isinstance(value, PipelineInput):
        return f"${{{{parent.inputs.{value.name}}}}}"
    if isinstance(value, StepOutput):
        return f"${{{{parent.jobs.{value.step}.outputs.{value.name}}}}}"
    return "".join(part if isinstance(part, str) else expression(part) for part in value.parts)


def step_layout(step: Step) -> str:
    """The layout that the plan asks for."""
    processes = getattr(step.distribution, "process_count_per_instance", None) or 1
    return layout(step.distribution.type, step.instance_count, processes)


def _heading(plan: Plan) -> Text:
    heading = Text.assemble((plain(plan.display_name or plan.name), "bold"), f"  {count(len(plan.steps), 'step')}")
    for part in (plan.source, plan.description):
        if part:
            heading.append(f"\n{plain(part)}", style="bright_black")
    return heading


def _title(place: int, step: Step) -> Text:
    return Text.assemble((f"{place}  ", "bright_black"), (plain(step.name), "bold"), "  ", (step_layout(step), "blue"))


def _print_step(console: Console, step: Step, command: str | None) -> None:
    component = " ".join(part for part in (step.component, step.version) if part)
    facts = {
        "component": component,
        "defined in": str(step.location or ""),
        "after": ", ".join(step.needs()),
        "size": step.instance_type,
        "environment": step.environment,
        "time-out": "" if step.timeout is None else duration(step.timeout),
        "reuse": "" if step.deterministic else "never: the component is not deterministic",
        "command": step.command.strip(),
        "  rendered": (command or "").strip() if command != step.command else "",
    }
    for name, value in facts.items():
        if value:
            _print_fact(console, name, plain(value))
    _print_ports(console, "inputs", [(port.name, _port_type(port), expression(port.value)) for port in step.inputs])
    _print_ports(console, "outputs", [(port.name, _port_type(port), port.path or "") for port in step.outputs])
    if step.environment_variables:
        _print_ports(console, "variables", [(name, "", value) for name, value in step.environment_variables.items()])


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


def _step(step: Step, environments: Sequence[tuple[Process, Mapping[str, str]]], command: str | None) -> dict[str, Any]:
    variables = rank_variables(environments)
    return {
        "name": step.name,
        "display_name": step.display_name,
        "component": step.component,
        "version": step.version,
        "location": str(step.location) if step.location else None,
        "needs": list(step.needs()),
        "distribution": step.distribution.type,
        "instance_count": step.instance_count,
        "process_count_per_instance": getattr(step.distribution, "process_count_per_instance", None) or 1,
        "instance_type": step.instance_type,
        "environment": step.environment,
        "environment_variables": dict(step.environment_variables),
        "timeout": step.timeout,
        "is_deterministic": step.deterministic,
        "command": step.command,
        "rendered_command": command,
        "inputs": [_input(port) for port in step.inputs],
        "outputs": [
            {"name": port.name, "type": port.type, "mode": port.mode, "path": port.path} for port in step.outputs
        ],
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
