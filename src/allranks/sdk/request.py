"""The request for a job as plain data, with the local paths of its code, environments and files.

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

    name, version: "" for an anonymous environment
    context:       the path or URI of the build context; "" if there is none
    conda:         the conda specification
    conda_file:    the file of the conda specification; "" if it is inline
    file:          the file that defines the environment; "" if there is none
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

    path:     as written in its file; None if there are only additional includes
    base:     the folder that the path is relative to
    includes: the additional includes, as written in the file
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
    code:        None if it has no code
    environment: a definition, or the id of a registered one
    nodes:       the nodes of a pipeline component
    base:        the folder that paths in it are relative to
    file:        the file that describes it; "" if there is none
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
        """The template of the command; "" if there is none."""
        return str(self.spec.get("command") or "")


@dataclass(frozen=True)
class NodeRequest:
    """A node of a pipeline, or a standalone job with a component.

    body:        the node in the request
    component:   a definition, or the id of a registered one; None for a node without a component
    registered:  the id of the component; "" if it is not registered
    key:         the key that names the component: component, trial or task
    ports:       the names of the inputs and of the outputs that the job sets, including those that are not sent
    environment: the environment of the node itself, which is not sent in a pipeline
    problems:    reasons why the node cannot be sent
    warnings:    about settings that are not sent
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

    name:     the name of the job, or else of its component or its file
    settings: of a pipeline
    inputs:   of a pipeline: plain values, or mappings with the path, the type and the mode of data
    outputs:  of a pipeline, as of a component
    root:     the component of a pipeline, or its id; the node of any other job; None for an unsupported kind
    dropped:  inputs whose values are not sent
    without_compute: paths of the steps without a compute in a pipeline without a default. azure-ai-ml refuses to submit
              them, even if they set a size
    problems: keys and messages of azure-ai-ml about `on_init` and `on_finalize`
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
"""Descriptions of unsupported types of nodes, for messages."""


def not_run_name(kind: str) -> str:
    """Return the description of a node of an unsupported type, for messages."""
    return NOT_RUN.get(kind, f"a node of type {kind}")


def not_run(where: str, what: str) -> Problem:
    """Return the problem of an unsupported job."""
    found = f"{what} does not run on this machine"
    return Problem(where, found, "a pipeline, a command job or a sweep", code="not-run-here", level=Level.MACHINE)
