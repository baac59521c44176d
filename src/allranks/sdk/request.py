"""A job as azure-ai-ml would send it: plain data, with the places of its parts on this machine.

Nothing above this module reads the entities of azure-ai-ml.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.errors import Level, Problem
from allranks.sdk.paths import is_remote


@dataclass(frozen=True)
class EnvironmentRequest:
    """An environment that is defined with the job.

    name, version: its own; "" for an anonymous one
    context:       the path or URI of its build context; "" if it has none
    conda:         its conda specification
    conda_file:    the file of that; "" if it is written inline
    file:          the file that defines the environment; ""
    base:          the folder that paths are relative to
    """

    name: str
    version: str
    image: str
    context: str
    dockerfile: str
    conda: Mapping[str, Any] | None
    conda_file: str
    file: str
    base: Path

    @property
    def folder(self) -> Path | None:
        """The build context on this machine; None if there is none."""
        return Path(self.base, self.context) if self.context and not is_remote(self.context) else None


@dataclass(frozen=True)
class CodeRequest:
    """The code of a component, before it is uploaded.

    path:     as its file has it; None if it has only additional includes
    base:     the folder that the path is relative to
    includes: the additional includes, as the file has them
    """

    path: str | None
    base: Path
    includes: Sequence[Any] = ()


@dataclass(frozen=True)
class ComponentRequest:
    """A component.

    spec:        its specification in the request
    inputs:      the declared inputs by name: type, default, optional, min, max, enum and mode; those of groups have
                 dotted names
    outputs:     the declared outputs by name: type, mode, path and asset; of a pipeline also source, the binding to the
                 output of a node
    code:        None if it has none
    environment: a definition, or the id of a registered one
    nodes:       of a pipeline component
    base:        the folder that paths in it are relative to
    file:        that describes it; ""
    """

    spec: Mapping[str, Any]
    inputs: Mapping[str, Mapping[str, Any]]
    outputs: Mapping[str, Mapping[str, Any]]
    code: CodeRequest | None
    environment: EnvironmentRequest | str | None
    nodes: Mapping[str, NodeRequest]
    base: Path
    file: str
    is_anonymous: bool

    @property
    def type(self) -> str:
        return str(self.spec.get("type") or "")

    @property
    def command(self) -> str:
        """The template of its command; "" if it has none."""
        return str(self.spec.get("command") or "")


@dataclass(frozen=True)
class NodeRequest:
    """A node of a pipeline, or a job by itself that has a component.

    body:        the node in the request
    component:   a definition, or the id of a registered one; None for a node without a component
    registered:  the id of its component; "" for one that is not registered
    key:         the key that names the component: component, trial or task
    ports:       the names of the inputs and of the outputs that the job gives, including those that are not sent
    environment: the node's own, which is not sent in a pipeline
    problems:    why it cannot be sent
    warnings:    what is not sent of it
    """

    body: Mapping[str, Any]
    component: ComponentRequest | str | None = None
    registered: str = ""
    key: str = ""
    ports: tuple[Sequence[str], ...] = ((), ())
    environment: EnvironmentRequest | str | None = None
    problems: Sequence[Problem] = ()
    warnings: Sequence[Problem] = ()

    @property
    def type(self) -> str:
        return str(self.body["type"])


@dataclass(frozen=True)
class JobRequest:
    """A job.

    name:     its own, or else that of its component or its file
    display_name, description, experiment: "" if it does not set them
    settings: of a pipeline
    inputs:   of a pipeline: plain values, or mappings with the path, the type and the mode of data
    outputs:  of a pipeline, as of a component
    root:     a pipeline's component, or its id; the node of a job of one node; None for a job of another kind
    dropped:  inputs whose values are not sent
    without_compute: the paths of the steps for which neither they nor the pipeline name a compute. azure-ai-ml refuses
              to submit them, even if they name a size
    problems: of `on_init` and `on_finalize`: the key and the message of azure-ai-ml
    """

    type: str
    name: str
    display_name: str
    description: str
    experiment: str
    base: Path
    root: ComponentRequest | NodeRequest | str | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    without_compute: tuple[str, ...] = ()
    problems: Sequence[tuple[str, str]] = ()


NOT_RUN = {
    "automl": "an AutoML job",
    "data_transfer": "a data transfer that imports or exports",
    "finetuning": "a fine-tuning job of the service",
    "import": "an import node",
    "spark": "a Spark node",
    "sweep": "a sweep",
}
"""By type, as messages name them."""


def not_run_name(kind: str) -> str:
    """Return a node of a type that the local engine does not run, as messages name it."""
    return NOT_RUN.get(kind, f"a node of type {kind}")


def not_run(where: str, what: str) -> Problem:
    """Return the problem of a job that does not run here."""
    found = f"{what} does not run on this machine"
    return Problem(where, found, "a pipeline, a command job or a sweep", code="not-run-here", level=Level.MACHINE)
