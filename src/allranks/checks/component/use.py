"""Check that every port is used, every used port exists, and optional ports are used as such."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.checks.component.subject import Subject
from allranks.checks.plan.rule import Level, Rule
from allranks.errors import Problem, did_you_mean

_TEMPLATE = 'Microsoft Learn, "CLI (v2) command component YAML schema", Command expressions'

COMMAND_MISSING = Rule(
    "command-missing",
    Level.ERROR,
    "A command component has no command.",
    'Microsoft Learn, "CLI (v2) command component YAML schema": command is required',
    "add it, such as: command: python train.py --lr ${{inputs.lr}}",
)
PORT_UNUSED = Rule(
    "port-unused", Level.ADVICE, "Nothing reads an input, or writes an output.", "style", "use it, or remove the port"
)
PORT_UNKNOWN = Rule(
    "port-unknown",
    Level.ERROR,
    "The command names an input or output that the component does not have.",
    "azure-ai-ml, `entities/_component/command_component.py`, CommandComponent._validate_command",
    "add it to the ports, or remove the reference",
)
COMPONENT_VARIABLES = Rule(
    "component-variables",
    Level.WARNING,
    "A component has environment variables, which azure-ai-ml 1.35 does not send.",
    "azure-ai-ml, `_schema/component/command_component.py`, and the request of its Command._to_rest_object",
    "set them in the command, or on the steps that use the component",
)
OPTIONAL_UNGUARDED = Rule(
    "optional-unguarded",
    Level.WARNING,
    "An optional input is used outside of $[[ ]], so that a step without it has an incomplete command.",
    _TEMPLATE,
    "write $[[--name ${{inputs.name}}]]",
)


def command(subject: Subject) -> Iterator[Problem]:
    if subject.needs_command and not subject.command.strip():
        yield subject.report(COMMAND_MISSING, ("command",), "it has no command", "a command line")


def unread(subject: Subject) -> Iterator[Problem]:
    if subject.needs_command and not subject.command.strip():
        return
    used = {(use.kind, use.name) for use in subject.uses} | set(_variables(subject))
    for kind, port in subject.ports():
        if (kind, port.name) not in used:
            verb = "reads" if kind == "inputs" else "writes"
            found = f"nothing {verb} the {kind[:-1]} {port.name}"
            by = f"${{{{{kind}.{port.name}}}}}" if subject.command else f"{port.name} in the function's body"
            yield subject.report(PORT_UNUSED, (kind, port.name), found, f"a use: {by}")


def unknown(subject: Subject) -> Iterator[Problem]:
    existing = {(kind, port.name) for kind, port in subject.ports()}
    for use in dict.fromkeys(subject.uses):
        if (use.kind, use.name) not in existing:
            names = [name for kind, name in existing if kind == use.kind]
            fix = did_you_mean(use.name, names, f"add it to {use.kind}, or remove the reference")
            expected = ", ".join(sorted(names)) or f"no {use.kind}"
            found = f"${{{{{use.kind}.{use.name}}}}} does not name a port"
            yield PORT_UNKNOWN.problem(use.where, found, expected, fix)


def variables(subject: Subject) -> Iterator[Problem]:
    """Check the component's own variables, which azure-ai-ml 1.35.2 does not send."""
    for name in subject.variables:
        fix = f"set it in the command, {name}=VALUE python ..., or on the steps that use the component"
        found = f"the variable {name}, which azure-ai-ml does not send to Azure ML with a component"
        yield subject.report(
            COMPONENT_VARIABLES, ("environment_variables", name), found, "no variables of the component's own", fix
        )


def optional_uses(subject: Subject) -> Iterator[Problem]:
    optional = {port.name for port in subject.inputs if port.is_optional}
    for use in dict.fromkeys(subject.uses):
        if use.kind == "inputs" and use.name in optional and not use.optional:
            found = f"the optional input {use.name} is outside of $[[ ]]"
            fix = f"write $[[--{use.name} ${{{{inputs.{use.name}}}}}]]"
            expected = "an optional part of the command: $[[ ... ]]"
            yield OPTIONAL_UNGUARDED.problem(use.where, found, expected, fix)


def _variables(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield ports that the code reads through the variables in which Azure ML passes their paths."""
    pattern = re.compile(r"AZURE_?ML_(INPUT|OUTPUT)_(\w+)")
    for path in subject.entries:
        for kind, name in pattern.findall(path.read_text(encoding="utf-8", errors="replace")):
            yield f"{kind.lower()}s", name
