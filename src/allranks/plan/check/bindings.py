"""What is bound to what: references that lead nowhere, and types that do not fit."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check import place
from allranks.plan.graph import (
    PRIMITIVES,
    Input,
    PipelineInput,
    PipelineOutput,
    Plan,
    Step,
    StepOutput,
    Text,
    Value,
    references,
)

_ACCEPTS = {
    "integer": {"integer"},
    "number": {"number", "integer"},
    "boolean": {"boolean"},
    "string": PRIMITIVES,
}
"""Primitive port type -> types that may be bound to it. Data may be bound to any data port, as on Azure ML."""

_NUMERIC = PRIMITIVES - {"string"}


def is_given(plan: Plan, value: Value | None) -> bool:
    """Whether something stands in a port; an input of the pipeline that has no value is nothing."""
    if isinstance(value, PipelineInput):
        return any(port.name == value.name and port.value is not None for port in plan.inputs)
    return value is not None


def of_input(plan: Plan, step: Step, port: Input) -> Iterator[Problem]:
    """What is wrong with what is bound to a step's input."""
    where = place.of_key(step, f"inputs.{port.name}")
    dangling = [problem for reference in references(port.value) for problem in _dangling(plan, where, reference)]
    if dangling:
        yield from dangling
        return
    if not is_given(plan, port.value) and not port.optional:
        yield from _missing(plan, where, port)
        return
    for reference in references(port.value):
        kind = _type(plan, reference)
        if isinstance(port.value, Text) and port.type not in _NUMERIC:
            # A path inside of a longer text is a path, or a text.
            continue
        if not _fits(kind, port.type):
            found = f"{_called(reference)} is {_article(kind)}, and is bound to {_article(port.type)}"
            yield Problem(where, found, _expected(port.type), f"bind {_article(port.type)} to it")


def of_outputs(plan: Plan) -> Iterator[Problem]:
    """What is wrong with the pipeline's outputs."""
    for output in plan.outputs:
        where = place.of_pipeline(plan, f"outputs.{output.name}")
        dangling = list(_dangling(plan, where, output.source))
        yield from dangling or _unfit(plan, where, output)


def _unfit(plan: Plan, where: str, output: PipelineOutput) -> Iterator[Problem]:
    kind = _type(plan, output.source)
    if not _fits(kind, output.type):
        found = f"{_called(output.source)} is {_article(kind)}, and is returned as {_article(output.type)}"
        yield Problem(where, found, _article(kind), f"declare it as {_article(kind)}")


def _dangling(plan: Plan, where: str, reference: PipelineInput | StepOutput) -> Iterator[Problem]:
    if isinstance(reference, PipelineInput):
        known = [port.name for port in plan.inputs]
        if reference.name not in known:
            expected = place.one_of(known, "the pipeline has no inputs")
            found = f"the pipeline has no input {reference.name}"
            yield Problem(where, found, expected, place.meant(reference.name, known))
        return
    steps = {step.name: step for step in plan.steps}
    if reference.step not in steps:
        fix = place.meant(reference.step, steps)
        yield Problem(where, f"there is no step {reference.step}", place.one_of(steps, ""), fix)
        return
    known = [port.name for port in steps[reference.step].outputs]
    if reference.name not in known:
        expected = place.one_of(known, "the step has no outputs")
        found = f"step {reference.step} has no output {reference.name}"
        yield Problem(where, found, expected, place.meant(reference.name, known))


def _missing(plan: Plan, where: str, port: Input) -> Iterator[Problem]:
    if isinstance(port.value, PipelineInput):
        source = next(other for other in plan.inputs if other.name == port.value.name)
        value = "VALUE" if port.type in PRIMITIVES else "PATH"
        found = f"it needs the pipeline's input {source.name}, which has no value"
        yield Problem(where, found, _article(port.type), f"give it one: --set {source.name}={value}")
    else:
        yield Problem(
            where, "the input is required, but nothing is bound to it", _article(port.type), "give it a value"
        )


def _type(plan: Plan, reference: PipelineInput | StepOutput) -> str:
    """The type of what a reference leads to, which is there."""
    if isinstance(reference, PipelineInput):
        return next(port.type for port in plan.inputs if port.name == reference.name)
    return next(port.type for port in plan.step(reference.step).outputs if port.name == reference.name)


def _fits(kind: str, port: str) -> bool:
    return kind in _ACCEPTS[port] if port in _ACCEPTS else kind not in PRIMITIVES


def _expected(port: str) -> str:
    return " or ".join(map(_article, sorted(_ACCEPTS[port]))) if port in _ACCEPTS else "data, not a single value"


def _called(reference: PipelineInput | StepOutput) -> str:
    if isinstance(reference, PipelineInput):
        return f"input {reference.name} of the pipeline"
    return f"output {reference.name} of step {reference.step}"


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"
