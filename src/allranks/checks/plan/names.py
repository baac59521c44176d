"""Check that names of steps, ports and variables are unique and valid as names of folders and variables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from allranks.checks.plan.bindings import dangling
from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.errors import Problem
from allranks.plan.graph import Node, Step
from allranks.plan.ports import GraphInput, references

NAMES = Rule(
    "name",
    Level.ERROR,
    "A name of a step, a port or a variable is there twice, or has characters that a folder or a variable cannot have.",
    "azure-ai-ml, `_utils/utils.py`, is_valid_node_name; POSIX, names of environment variables",
    "rename it",
)

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_EXPECTED = "letters, digits, _, - and .; a letter, digit or _ first"


def of_graph(scope: Scope) -> Iterator[Problem]:
    """Yield the problems of the names of the graph's nodes, inputs and outputs."""
    graph = scope.graph
    if not graph.nodes:
        yield Problem(scope.own_key("jobs"), "the pipeline has no steps", "at least one step")
    yield from _wrong(scope.own_key("jobs"), (node.name for node in graph.nodes))
    yield from _wrong(scope.own_key("inputs"), (port.name for port in graph.inputs))
    yield from _wrong(scope.own_key("outputs"), (port.name for port in graph.outputs))


def of_ports(scope: Scope, node: Node) -> Iterator[Problem]:
    """Yield the problems of the names of a node's ports."""
    yield from _wrong(scope.key(node, "inputs"), (port.name for port in node.inputs))
    yield from _wrong(scope.key(node, "outputs"), (port.name for port in node.outputs))


def of_variables(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield the problems of a step's environment variables."""
    for name, value in step.environment_variables.items():
        where = scope.key(step, f"environment_variables.{name}")
        if not name or "=" in name or "\0" in name:
            yield Problem(where, f"{name!r} cannot be the name of a variable", "a name without = in it")
        if isinstance(value, str):
            if "\0" in value:
                yield Problem(where, "there is a NUL character in the value", "a text without one")
            continue
        for reference in references(value):
            missing = list(dangling(scope, where, reference))
            yield from missing
            if not missing and isinstance(reference, GraphInput) and scope.value(reference) is None:
                yield Problem(where, f"it needs input {reference.name} of {scope.name}, which has no value", "a text")


def _wrong(where: str, names: Iterable[str]) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(where, f"the name {name} is there {count} times", "each name once", "rename all but one")
        if not _NAME.fullmatch(name):
            yield Problem(where, f"{name!r} cannot be a name", _EXPECTED, "rename it")
