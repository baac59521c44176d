"""The jobs of v1 scripts in the terms of azure-ai-ml, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Environment:
    """An environment: a reference to a registered one, or the content of its own file.

    spec:      the keys of its YAML that define its image and packages
    files:     the files beside its YAML, by name: texts, or values to write as YAML
    variables: environment variables, which azure-ai-ml sets on a step
    """

    name: str
    reference: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Input:
    """An input of a step. At most one of the last four is set.

    default:   a literal
    path:      the location of data: a local path, a URI, or ``azureml:NAME@latest``
    source:    the step and its output that it is bound to
    parameter: the parameter of the pipeline that it is bound to
    """

    type: str
    mode: str = ""
    default: Any = None
    path: str = ""
    source: tuple[str, str] | None = None
    parameter: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Output:
    """An output of a step. path: its location; "" for the default datastore; asset: the name to register it with"""

    mode: str = ""
    path: str = ""
    asset: str = ""


@dataclass(frozen=True)
class Sweep:
    """A search. space: for each input, an expression of azure-ai-ml.sweep; policy: an expression for the policy"""

    space: Mapping[str, str]
    sampling: str
    metric: str
    goal: str
    limits: Mapping[str, int]
    policy: str = ""


@dataclass(frozen=True)
class Layout:
    """The distribution in the terms of azure-ai-ml. processes: the total number that v1 starts"""

    distribution: Mapping[str, Any]
    instance_count: int
    processes: int


@dataclass(frozen=True)
class Job:
    """A step.

    code:      the folder of the script
    script:    the script, relative to it; "" for another command
    spec:      the keys of its component's YAML that do not depend on other files
    processes: the total number that v1 starts
    comments:  the comments above it
    """

    name: str
    code: Path
    script: str
    line: int
    environment: Environment
    spec: Mapping[str, Any]
    processes: int = 1
    inputs: Mapping[str, Input] = field(default_factory=dict)
    outputs: Mapping[str, Output] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    compute: str = ""
    timeout: int | None = None
    sweep: Sweep | None = None
    comments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pipeline:
    """All steps of a script, in order. parameters: the defaults of the pipeline's inputs; experiment: "" if unknown"""

    jobs: tuple[Job, ...]
    parameters: Mapping[str, Any]
    experiment: str = ""
    comments: tuple[str, ...] = ()
