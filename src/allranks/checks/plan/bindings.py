"""Check bindings: dangling references, and types that do not match."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.checks.plan.suggestions import meant, number_with_point, one_of
from allranks.checks.plan.tolerated import DANGLING
from allranks.errors import Problem
from allranks.plan.graph import Node
from allranks.plan.ports import PRIMITIVES, GraphInput, GraphOutput, Input, Literal, Reference, Text, Value, references

BINDING = Rule(
    "binding",
    Level.ERROR,
    "A required input has no value, or is bound to one of another type.",
    "azure-ai-ml, `entities/_job/pipeline/pipeline_job.py`, PipelineJob._validate_input, and "
    "`operations/_job_operations.py`, JobOperations._resolve_job_input: an input of data needs a path when the job is "
    'submitted; Microsoft Learn, "CLI (v2) pipeline job YAML schema", expressions',
    "give it a value of its type",
)

_ACCEPTS = {
    "integer": {"integer"},
    "number": {"number", "integer"},
    "boolean": {"boolean"},
    "string": PRIMITIVES,
}
"""Primitive port type -> types that may be bound to it. Data may be bound to any data port, as on Azure ML."""

_NUMERIC = PRIMITIVES - {"string"}


def is_given(scope: Scope, value: Value | None) -> bool:
    """Return whether a port has a value. A binding to an input of the graph without a value does not count."""
    return scope.value(value) is not None


def of_input(scope: Scope, node: Node, port: Input) -> Iterator[Problem]:
    """Yield the problems of the value of a node's input."""
    where = scope.key(node, f"inputs.{port.name}")
    missing = [problem for reference in references(port.value) for problem in dangling(scope, where, reference)]
    if missing:
        yield from missing
        return
    if not is_given(scope, port.value) and not port.optional:
        yield from _missing(scope, where, port)
        return
    for reference in references(port.value):
        kind = scope.type_of(reference)
        if isinstance(port.value, Text) and port.type not in _NUMERIC:
            # A text that contains a path is a path or a string.
            continue
        if not fits(kind, port.type):
            found = f"{called(scope, reference)} is {article(kind)}, and is bound to {article(port.type)}"
            yield Problem(where, found, _expected(port.type), _fix(scope, reference, port), code="wrong-type")


def _fix(scope: Scope, reference: Reference, port: Input) -> str:
    bound = scope.value(reference)
    if port.type == "number" and isinstance(bound, Literal) and (fix := number_with_point(bound.value)):
        return fix
    return f"bind {article(port.type)} to it"


def of_outputs(scope: Scope) -> Iterator[Problem]:
    """Yield the problems of the graph's outputs."""
    for output in scope.graph.outputs:
        where = scope.own_key(f"outputs.{output.name}")
        missing = list(dangling(scope, where, output.source))
        yield from missing or _unfit(scope, where, output)


def _unfit(scope: Scope, where: str, output: GraphOutput) -> Iterator[Problem]:
    kind = scope.type_of(output.source)
    if not fits(kind, output.type):
        found = f"{called(scope, output.source)} is {article(kind)}, and is returned as {article(output.type)}"
        yield Problem(where, found, article(kind), f"declare it as {article(kind)}")


def dangling(scope: Scope, where: str, reference: Reference) -> Iterator[Problem]:
    """Yield a problem if a reference is dangling."""
    if isinstance(reference, GraphInput):
        known = list(scope.graph.input_by_name)
        if reference.name not in known:
            expected = one_of(known, f"{scope.name} has no inputs")
            found = f"{scope.name} has no input {reference.name}"
            fix = meant(reference.name, known) or f"declare {reference.name} in the inputs of {scope.name}"
            yield DANGLING.problem(where, found, expected, fix)
        return
    nodes = scope.graph.by_name
    if reference.node not in nodes:
        found = f"there is no step {reference.node}"
        yield DANGLING.problem(where, found, one_of(nodes, ""), meant(reference.node, nodes))
        return
    known = [port.name for port in nodes[reference.node].outputs]
    if reference.name not in known:
        expected = one_of(known, "the step has no outputs")
        found = f"step {reference.node} has no output {reference.name}"
        yield DANGLING.problem(where, found, expected, meant(reference.name, known))


def _missing(scope: Scope, where: str, port: Input) -> Iterator[Problem]:
    if isinstance(port.value, GraphInput):
        name = port.value.name
        value = "VALUE" if port.type in PRIMITIVES else "PATH"
        found = f"it needs the pipeline's input {name}, which has no value"
        if scope.path:
            found = f"it needs input {name} of {scope.name}, which has no value"
        fix = f"give it one: {scope.set_input(name, value)}"
        yield Problem(where, found, article(port.type), fix, code="missing-input")
    else:
        found = "the input is required, but nothing is bound to it"
        yield Problem(where, found, article(port.type), "give it a value", code="missing-input")


def fits(kind: str, port: str) -> bool:
    """Return whether a value of one type may be bound to a port of another."""
    return kind in _ACCEPTS[port] if port in _ACCEPTS else kind not in PRIMITIVES


def _expected(port: str) -> str:
    return " or ".join(map(article, sorted(_ACCEPTS[port]))) if port in _ACCEPTS else "data, not a single value"


def called(scope: Scope, reference: Reference) -> str:
    """Return the target of a reference as named in messages."""
    if isinstance(reference, GraphInput):
        return f"input {reference.name} of {scope.name}"
    return f"output {reference.name} of step {reference.node}"


def article(kind: str) -> str:
    """Return a type with its article."""
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"
