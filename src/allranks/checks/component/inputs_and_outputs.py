"""Check the ports: names, types, descriptions and optional marks, and their use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.catalog.declared_ports import DATA, FALSE, PARAMETERS, TRUE
from allranks.checks.component.subject import Subject
from allranks.errors import Problem, Rule, did_you_mean

LEGACY = frozenset({"path"})
"""Types of earlier versions, which azure-ai-ml still accepts (SUPPORTED_PORT_TYPES)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")

PORT_NAME = Rule.named("port-name")
PORT_NAME_CASE = Rule.named("port-name-case")
PORT_TYPE = Rule.named("port-type")
PORT_DESCRIPTION = Rule.named("port-description")
OPTIONAL_MARK = Rule.named("optional-mark")


def names(subject: Subject) -> Iterator[Problem]:
    """Check the names as azure-ai-ml does (Component._validate_io_names)."""
    seen: dict[str, str] = {}
    for kind, port in subject.ports():
        keys = (kind, port.name)
        if not _NAME.fullmatch(port.name):
            expected = "letters, digits and underscores, not beginning with a digit"
            yield subject.report(PORT_NAME, keys, f"{kind} has {port.name!r}", expected)
        other = seen.setdefault(f"{kind}.{port.name.lower()}", port.name)
        if other != port.name:
            found = f"{port.name!r} and {other!r}, which Azure ML treats as the same name"
            yield subject.report(PORT_NAME_CASE, keys, found, "names that differ in more than case")


def types(subject: Subject) -> Iterator[Problem]:
    known = DATA | PARAMETERS | LEGACY
    for kind, port in subject.ports():
        if port.type not in known:
            found = f"type {port.type!r}" if port.type else "no type"
            expected = ", ".join(sorted(DATA | PARAMETERS))
            yield subject.report(PORT_TYPE, (kind, port.name, "type"), found, expected, "use one of those")


def descriptions(subject: Subject) -> Iterator[Problem]:
    for kind, port in subject.ports():
        text = " ".join(port.description.split())
        if not text or text.rstrip(".").lower() in (port.name.lower(), port.name.lower().replace("_", " ")):
            found = f"{kind[:-1]} {port.name} has no description" if not text else f"description {text!r}"
            yield subject.report(PORT_DESCRIPTION, (kind, port.name, "description"), found, "what it means")


def optional_marks(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        keys = ("inputs", port.name, "optional")
        if str(port.optional).lower() not in TRUE | FALSE:
            yield subject.report(OPTIONAL_MARK, keys, f"optional {port.optional!r}", "true or false")


_TEMPLATE = 'Microsoft Learn, "CLI (v2) command component YAML schema", Command expressions'

COMMAND_MISSING = Rule.named("command-missing")
PORT_UNUSED = Rule.named("port-unused")
PORT_UNKNOWN = Rule.named("port-unknown")
COMPONENT_VARIABLES = Rule.named("component-variables")
OPTIONAL_UNGUARDED = Rule.named("optional-unguarded")


def command_exists(subject: Subject) -> Iterator[Problem]:
    if subject.needs_command and not subject.command.strip():
        yield subject.report(COMMAND_MISSING, ("command",), "it has no command", "a command line")


def unread(subject: Subject) -> Iterator[Problem]:
    """Check that each port is used. Linters of Python find the unused parameters of a function."""
    if subject.path.suffix == ".py" or (subject.needs_command and not subject.command.strip()):
        return
    used = {(use.kind, use.name) for use in subject.uses} | set(_ports_in_code(subject))
    for kind, port in subject.ports():
        if (kind, port.name) not in used:
            verb = "reads" if kind == "inputs" else "writes"
            found = f"nothing {verb} the {kind[:-1]} {port.name}"
            yield subject.report(PORT_UNUSED, (kind, port.name), found, f"a use: ${{{{{kind}.{port.name}}}}}")


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
            COMPONENT_VARIABLES,
            ("environment_variables", name),
            found,
            "a component without environment variables",
            fix,
        )


def optional_uses(subject: Subject) -> Iterator[Problem]:
    optional = {port.name for port in subject.inputs if port.is_optional and port.default is None}
    for use in dict.fromkeys(subject.uses):
        if use.kind == "inputs" and use.name in optional and not use.optional:
            found = f"the optional input {use.name} is outside of $[[ ]]"
            fix = f"write $[[--{use.name} ${{{{inputs.{use.name}}}}}]]"
            expected = "an optional part of the command: $[[ ... ]]"
            yield OPTIONAL_UNGUARDED.problem(use.where, found, expected, fix)


def _ports_in_code(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield ports that the code reads through the variables in which Azure ML passes their paths."""
    pattern = re.compile(r"AZURE_?ML_(INPUT|OUTPUT)_(\w+)")
    for path in subject.entries:
        for kind, name in pattern.findall(path.read_text(encoding="utf-8", errors="replace")):
            yield f"{kind.lower()}s", name
