"""The compiled pipeline as plain data: what runs, on how many ranks, on which inputs, and nothing of any SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from allranks.contract.distributions import Distribution
from allranks.contract.single import Single

PRIMITIVES = frozenset({"integer", "number", "string", "boolean"})
"""Port types whose value is a single literal."""

FILE_TYPES = frozenset({"uri_file"}) | PRIMITIVES
"""Port types whose output is one file; of every other type it is a folder."""

NOTHING: Mapping[str, str] = MappingProxyType({})
"""An empty mapping that nobody can fill."""


@dataclass(frozen=True)
class Location:
    """A place in the user's files, for messages. cell: of a notebook, from 1; 0: the file is no notebook."""

    file: str
    line: int
    cell: int = 0

    def __str__(self) -> str:
        return f"{self.file}, cell {self.cell}, line {self.line}" if self.cell else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Literal:
    """A value that is known before anything runs: a number, a text, a boolean."""

    value: str | int | float | bool


@dataclass(frozen=True)
class Path:
    """Data that exists before the run: an absolute local path, or a URI that this machine may be unable to read."""

    path: str


@dataclass(frozen=True)
class PipelineInput:
    """The value of an input of the pipeline: ``${{parent.inputs.NAME}}``."""

    name: str


@dataclass(frozen=True)
class StepOutput:
    """What another step writes: ``${{parent.jobs.STEP.outputs.NAME}}``."""

    step: str
    name: str


@dataclass(frozen=True)
class Text:
    """A text with bindings inside it, in order: ``"lr-${{parent.inputs.lr}}"`` is ``Text(("lr-",
    PipelineInput("lr")))``."""

    parts: tuple[str | PipelineInput | StepOutput, ...]


Value: TypeAlias = Literal | Path | PipelineInput | StepOutput | Text


@dataclass(frozen=True)
class Input:
    """An input port with what is bound to it.

    type:  integer, number, string, boolean, uri_file, uri_folder, mltable, custom_model, mlflow_model, triton_model
    value: None where an optional input is not given
    mode:  ro_mount, rw_mount, mount, download, direct, eval_mount, eval_download; "" for a primitive
    """

    name: str
    type: str
    value: Value | None = None
    mode: str = ""
    optional: bool = False
    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[str, ...] = ()


@dataclass(frozen=True)
class Output:
    """An output port.

    mode: rw_mount, mount, upload, direct; "" for a primitive, which is the path of a file that the process writes
    path: where the user wants it (a local path, or a template with ``${{name}}``, ``${{output_name}}``); None: the
    run's folder
    """

    name: str
    type: str
    mode: str = ""
    path: str | None = None


@dataclass(frozen=True)
class Code:
    """The snapshot that a step runs in: a folder that is never written to, and the digest of its content."""

    folder: str
    digest: str


@dataclass(frozen=True)
class Step:
    """A component as it is used in a pipeline.

    command:               the template, with ``${{inputs.x}}``, ``${{outputs.y}}`` and ``$[[ ... ]]`` in it
    environment:           what the step names, for people and for the reuse key
    environment_variables: the component's with the step's on top
    timeout:               seconds after which the step is stopped, or None
    shm_size:              bytes of /dev/shm an instance
    deterministic:         whether an earlier result of the same inputs may stand in for a run
    after:                 names of steps that must end first although no data passes between them
    unsent_environment:    what the step itself names in place of its component's, which azure-ai-ml never sends
    spec:                  the file on this machine that describes the component, for messages; "" where there is none
    """

    name: str
    command: str
    component: str = ""
    version: str = ""
    display_name: str = ""
    description: str = ""
    code: Code | None = None
    environment: str = ""
    environment_variables: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    distribution: Distribution = field(default_factory=Single)
    instance_count: int = 1
    instance_type: str = ""
    shm_size: int = 2 << 30
    timeout: float | None = None
    deterministic: bool = True
    after: tuple[str, ...] = ()
    location: Location | None = None
    unsent_environment: str = field(default="", compare=False)
    spec: str = field(default="", compare=False)

    def needs(self) -> tuple[str, ...]:
        """Names of the steps that must end before this one starts, each once, in the order in which they are met."""
        found: dict[str, None] = {}
        for port in self.inputs:
            for reference in references(port.value):
                if isinstance(reference, StepOutput):
                    found[reference.step] = None
        return tuple(found | dict.fromkeys(self.after))


@dataclass(frozen=True)
class PipelineOutput:
    """An output of the pipeline and the step that writes it."""

    name: str
    source: StepOutput
    type: str = "uri_folder"
    path: str | None = None


@dataclass(frozen=True)
class Plan:
    """A pipeline that is ready to run.

    steps:                    in an order in which every step comes after those it needs
    source:                   the file it was read from
    continue_on_step_failure: whether steps that need nothing of a failed step still run
    force_rerun:              whether earlier results are left aside
    """

    name: str
    steps: tuple[Step, ...]
    inputs: tuple[Input, ...] = ()
    outputs: tuple[PipelineOutput, ...] = ()
    display_name: str = ""
    description: str = ""
    experiment: str = ""
    source: str = ""
    continue_on_step_failure: bool = True
    force_rerun: bool = False

    def step(self, name: str) -> Step:
        """The step of that name. Raises KeyError where there is none."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)


def references(value: Value | None) -> tuple[PipelineInput | StepOutput, ...]:
    """The bindings that stand in a value."""
    if isinstance(value, (PipelineInput, StepOutput)):
        return (value,)
    if isinstance(value, Text):
        return tuple(part for part in value.parts if not isinstance(part, str))
    return ()
