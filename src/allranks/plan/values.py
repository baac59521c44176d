"""What the inputs of a step are worth once the steps before it have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from allranks.contract.templating import wire
from allranks.plan.graph import PRIMITIVES, Input, Literal, Path, PipelineInput, Plan, Step, StepOutput, Value
from allranks.runs.records import OutputRecord, RunRecord


@dataclass(frozen=True)
class Given:
    """An input port with its value: text for a primitive, an absolute path for data, None where an optional one is not
    given."""

    name: str
    type: str
    mode: str
    value: str | None


OutputOf = Callable[[StepOutput], str]
"""Says what a reference to another step's output stands for: a path, or the text of a primitive."""


def given(plan: Plan, step: Step, output_of: OutputOf) -> list[Given]:
    """Every input port of the step with its value.

    The plan has been checked: each reference leads somewhere.
    """
    return [Given(port.name, port.type, port.mode, resolve(plan, port.value, output_of)) for port in step.inputs]


def resolve(plan: Plan, value: Value | None, output_of: OutputOf) -> str | None:
    """The text that stands for a value in a command; None for nothing."""
    if value is None:
        return None
    if isinstance(value, Literal):
        return wire(value.value)
    if isinstance(value, Path):
        return value.path
    if isinstance(value, StepOutput):
        return output_of(value)
    if isinstance(value, PipelineInput):
        return resolve(plan, _pipeline_input(plan, value.name).value, output_of)
    return "".join(part if isinstance(part, str) else resolve(plan, part, output_of) or "" for part in value.parts)


def outputs_of(run: RunRecord) -> OutputOf:
    """Looks references up among what the run's steps have written."""

    def output_of(reference: StepOutput) -> str:
        output = _output(run, reference)
        return output.value if output.value is not None and output.type in PRIMITIVES else output.path

    return output_of


def digests(ports: list[Given], run: RunRecord, digest_of: Callable[[str], str]) -> dict[str, str | None]:
    """For each port what its reuse depends on: the text of a primitive, the digest of data.

    digest_of: digests a path; what a step of this run wrote has been digested already
    """
    known = {output.path: output.digest for record in run.steps for output in record.outputs if output.digest}
    found: dict[str, str | None] = {}
    for port in ports:
        if port.value is None or port.type in PRIMITIVES:
            found[port.name] = port.value
        else:
            found[port.name] = known.get(port.value) or digest_of(port.value)
    return found


def _pipeline_input(plan: Plan, name: str) -> Input:
    return next(port for port in plan.inputs if port.name == name)


def _output(run: RunRecord, reference: StepOutput) -> OutputRecord:
    return next(output for output in run.step(reference.step).outputs if output.name == reference.name)
