"""Check the names, bindings and values of ports: dangling references, types that do not match, invalid names."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from allranks.checks.plan.scope import Scope
from allranks.errors import Problem, finding
from allranks.plan import literals, values
from allranks.plan.graph import Node, Step
from allranks.plan.literals import number_with_point, one_of, suggestion
from allranks.plan.ports import PRIMITIVES, GraphInput, GraphOutput, Input, Literal, Reference, Text, references
from allranks.secrets import quoted

_ACCEPTS = {"integer": {"integer"}, "number": {"number", "integer"}, "boolean": {"boolean"}, "string": PRIMITIVES}
"""Primitive port type -> types that may be bound to it. As on Azure ML, data may be bound to any data port."""

_WHOLE_NUMBER = ("number", "integer")
_NUMERIC = PRIMITIVES - {"string"}


def binding(scope: Scope, node: Node, port: Input) -> Iterator[Problem]:
    """Yield the problems of the value of a node's input."""
    where = scope.key(node, f"inputs.{port.name}")
    missing = [problem for reference in references(port.value) for problem in dangling(scope, where, reference)]
    if missing:
        yield from missing
        return
    if scope.value(port.value) is None and not port.optional:
        yield from _missing(scope, where, port)
        return
    for reference in references(port.value):
        kind = scope.type_of(reference)
        if isinstance(port.value, Text) and port.type not in _NUMERIC:
            # A text that contains a path is a path or a string itself.
            continue
        # azure-ai-ml sends a number to an integer. The value of a pipeline's input is checked like any other.
        if (kind, port.type) == _WHOLE_NUMBER:
            if not isinstance(reference, GraphInput):
                yield finding("number-for-integer", where, f"{called(scope, reference)} is a number", "an integer")
        elif not fits(kind, port.type):
            found = f"{called(scope, reference)} is {article(kind)}, and is bound to {article(port.type)}"
            types = _ACCEPTS.get(port.type)
            expected = " or ".join(map(article, sorted(types))) if types else "data, not a single value"
            bound = scope.value(reference) if port.type == "number" else None
            fix = number_with_point(bound.value) if isinstance(bound, Literal) else ""
            yield Problem(where, found, expected, fix or f"bind {article(port.type)} to it", code="wrong-type")


def bound_outputs(scope: Scope) -> Iterator[Problem]:
    for output in scope.graph.outputs:
        where = scope.key(None, f"outputs.{output.name}")
        missing = list(dangling(scope, where, output.source))
        yield from missing or _unfit(scope, where, output)


def _unfit(scope: Scope, where: str, output: GraphOutput) -> Iterator[Problem]:
    kind = scope.type_of(output.source)
    if not fits(kind, output.type):
        found = f"{called(scope, output.source)} is {article(kind)}, and is returned as {article(output.type)}"
        yield Problem(where, found, article(kind), f"declare it as {article(kind)}")


def dangling(scope: Scope, where: str, reference: Reference) -> Iterator[Problem]:
    if isinstance(reference, GraphInput):
        known = list(scope.graph.input_by_name)
        if reference.name not in known:
            expected = one_of(known, f"{scope.name} has no inputs")
            found = f"{scope.name} has no input {reference.name}"
            fix = suggestion(reference.name, known) or f"declare {reference.name} in the inputs of {scope.name}"
            yield finding("dangling-binding", where, found, expected, fix)
        return
    nodes = scope.graph.by_name
    if reference.node not in nodes:
        found = f"there is no step {reference.node}"
        yield finding("dangling-binding", where, found, one_of(nodes, ""), suggestion(reference.node, nodes))
        return
    known = [port.name for port in nodes[reference.node].outputs]
    if reference.name not in known:
        expected = one_of(known, "the step has no outputs")
        found = f"step {reference.node} has no output {reference.name}"
        yield finding("dangling-binding", where, found, expected, suggestion(reference.name, known))


def _missing(scope: Scope, where: str, port: Input) -> Iterator[Problem]:
    if isinstance(port.value, GraphInput):
        name = port.value.name
        value = "VALUE" if port.type in PRIMITIVES else "PATH"
        found = f"it needs the pipeline's input {name}, which has no value"
        if scope.path:
            found = f"it needs input {name} of {scope.name}, which has no value"
        fix = f"set it: {scope.set_input(name, value)}"
        yield Problem(where, found, article(port.type), fix, code="missing-input")
    else:
        found = "the input is required, but nothing is bound to it"
        yield Problem(where, found, article(port.type), "give it a value", code="missing-input")


def fits(kind: str, port: str) -> bool:
    """Return whether a value of one type may be bound to a port of another."""
    return kind in _ACCEPTS[port] if port in _ACCEPTS else kind not in PRIMITIVES


def called(scope: Scope, reference: Reference) -> str:
    """Return the target of a reference, for messages."""
    if isinstance(reference, GraphInput):
        return f"input {reference.name} of {scope.name}"
    return f"output {reference.name} of step {reference.node}"


def article(kind: str) -> str:
    """Return a type with its article."""
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_NAME_EXPECTED = "letters, digits, _, - and ., beginning with a letter, digit or _"


def graph_names(scope: Scope) -> Iterator[Problem]:
    graph = scope.graph
    if not graph.nodes:
        yield Problem(scope.key(None, "jobs"), "the pipeline has no steps", "at least one step")
    yield from _wrong_names(scope.key(None, "jobs"), (node.name for node in graph.nodes))
    yield from _wrong_names(scope.key(None, "inputs"), (port.name for port in graph.inputs))
    yield from _wrong_names(scope.key(None, "outputs"), (port.name for port in graph.outputs))


def port_names(scope: Scope, node: Node) -> Iterator[Problem]:
    yield from _wrong_names(scope.key(node, "inputs"), (port.name for port in node.inputs))
    yield from _wrong_names(scope.key(node, "outputs"), (port.name for port in node.outputs))


def variables(scope: Scope, step: Step) -> Iterator[Problem]:
    for name, value in step.environment_variables.items():
        where = f"environment_variables.{name}"
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


def _wrong_names(where: str, names: Iterable[str]) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(where, f"the name {name} appears {count} times", "each name once", "rename all but one")
        if not _NAME.fullmatch(name):
            yield Problem(where, f"{name!r} cannot be a name", _NAME_EXPECTED, "rename it")


def lost_value(scope: Scope, node: Node | None, port: Input) -> Iterator[Problem]:
    """Yield a warning if the value of an input does not reach Azure ML. node: None for an input of the pipeline"""
    if port.on_azure and isinstance(port.value, Literal):
        found = f"{quoted(port.name, port.value.value)}: {port.on_azure}"
        yield Problem(scope.key(node, f"inputs.{port.name}"), found, "a value that reaches Azure ML")


def own_value(scope: Scope, node: None, port: Input) -> Iterator[Problem]:
    """Yield the problems of the value of an input of the pipeline, regardless of the ports bound to it."""
    where = scope.key(node, f"inputs.{port.name}")
    if isinstance(port.value, Literal):
        value = _without_macros(port, port.value.value)
        yield from literals.wrong(where, port, value, f"--set {port.name}=VALUE", expressions=literals.MACROS)


def value_of_input(scope: Scope, node: Node, port: Input) -> Iterator[Problem]:
    """Yield the problems of the value of a node's input, whether it is literal or bound."""
    where = scope.key(node, f"inputs.{port.name}")
    if isinstance(port.value, Literal):
        yield from literals.wrong(where, port, port.value.value, f"change {port.name}")
    elif isinstance(port.value, GraphInput):
        name = port.value.name
        source, bound = scope.graph.input_by_name.get(name), scope.value(port.value)
        # A value that does not match the declaration of the pipeline's input is reported there.
        if source and isinstance(bound, Literal):
            value = _without_macros(source, bound.value)
            whose = f"input {name} of {scope.name} is "
            if (source.type, port.type) == _WHOLE_NUMBER and not literals.fits(value, port.type):
                yield finding("number-for-integer", where, f"{whose}{quoted(name, value)}", "a whole number")
            elif not list(literals.wrong("", source, value, "")):
                yield from literals.wrong(where, port, value, scope.set_input(name, "VALUE"), whose)


def _without_macros(port: Input, value: str | int | float | bool) -> str | int | float | bool:
    """Return a value with its macros replaced by their names, because their values are known only in a run."""
    if port.type != "string" or not isinstance(value, str):
        return value
    return values.EXPRESSION.sub(lambda match: match[1], value)
