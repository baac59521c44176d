"""The steps of a job, their computes, and their requirements of a workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from allranks.contract.distributions import processes_per_instance
from allranks.hardware import traps
from allranks.plan.environment import cuda_version
from allranks.plan.graph import DoWhile, Graph, ParallelFor, Pipeline, Step, Sweep
from allranks.plan.reader.nodes import read_step
from allranks.sdk import internals

SERVERLESS = "serverless"
LOCAL = "local"

_ARM = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices"
    r"/(?:workspaces/(?P<workspace>[^/]+)/computes|virtualclusters)/(?P<name>[^/]+)/?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class JobStep:
    """A node other than a nested pipeline: a step, or a decision between steps.

    path:    its name, after those of its pipelines; "" for a job by itself
    node:    the SDK's node
    compute: its own, else that of the innermost pipeline with a compute; "" if there is none
    """

    path: str
    node: Any
    compute: str

    @property
    def kind(self) -> str:
        """The name of the node's class: Command, Parallel, Sweep, Spark."""
        return type(self.node).__name__

    @property
    def size(self) -> str:
        """The size that the step or its component names; "" if there is none."""
        resources = internals.resources(self.node) or getattr(self.node, "resources", None)
        resources = resources or getattr(internals.component(self.node), "resources", None)
        size = getattr(resources, "instance_type", None)
        return size if isinstance(size, str) else ""


def job_steps(node: Any, path: str = "", inherited: str = "") -> Iterator[JobStep]:
    """Yield the steps of the SDK's job, including those of nested pipelines. A job without steps is its only step.

    path, inherited: of a nested pipeline: its path, and the compute of its steps that name none
    """
    nodes = _nodes(node)
    if nodes is None:
        yield JobStep(path, node, _compute_name(vars(node).get("compute")) or inherited)
        return
    settings = getattr(node, "settings", None)
    compute = _compute_name(getattr(node, "compute", None) or getattr(settings, "default_compute", None)) or inherited
    for name, each in nodes.items():
        yield from job_steps(each, f"{path}.{name}" if path else name, compute)


def _nodes(job: Any) -> Mapping[str, Any] | None:
    """Return the nodes of a pipeline job, or of a node with a local pipeline component; None for a step."""
    if isinstance(job, internals.PipelineJob):
        return dict(job.jobs)
    inner = getattr(internals.component(job), "jobs", None)
    return dict(inner) if type(job).__name__ == "Pipeline" and isinstance(inner, dict) else None


def _compute_name(compute: Any) -> str:
    return str(compute).removeprefix("azureml:") if compute else ""


@dataclass(frozen=True)
class ComputeId:
    """The compute that a job names.

    name:      the name of the compute, or `SERVERLESS`, or `LOCAL`; "" if there is none
    workspace: the workspace of an ARM id; "" if only a name is given
    in_workspace: whether it is a compute of a workspace, not a virtual cluster
    """

    name: str
    workspace: str = ""
    in_workspace: bool = True

    @classmethod
    def parse(cls, text: object) -> ComputeId:
        """Return the compute of ``cpu-cluster``, ``azureml:cpu-cluster`` or an ARM id, with or without ``azureml:``."""
        given = str(text or "").strip().removeprefix("azureml:")
        match = _ARM.fullmatch(given)
        if match is None:
            return cls(given)
        return cls(match["name"], match["workspace"] or "", in_workspace=match["workspace"] is not None)

    @property
    def is_cluster(self) -> bool:
        """Whether it is a named compute of a workspace. An expression is evaluated only when the job runs."""
        reserved = self.name.lower() in ("", SERVERLESS, LOCAL) or "${{" in self.name
        return self.in_workspace and not reserved

    def is_of(self, workspace: str) -> bool:
        """Return whether it is a compute of the workspace with a name, ignoring case."""
        return self.is_cluster and self.workspace.lower() in ("", workspace.lower())


@dataclass(frozen=True)
class Requirements:
    """The requirements of one step.

    where:       the step, for messages
    compute:     of the step or of the job; "" if there is none
    size:        the size that the step names; "" if there is none
    instances:   the number of instances
    low_priority: whether it runs on low-priority (spot) instances
    processes:   ranks per instance if the platform starts every rank; else None
    environment: the step's reference: "azureml:pytorch:3"; "" if it is uploaded with the job
    component:   likewise
    cuda:        the CUDA version of its environment; "" if there is none or it is unknown
    infiniband:  whether its environment variables request InfiniBand
    """

    where: str
    compute: str = ""
    size: str = ""
    instances: int = 1
    low_priority: bool = False
    processes: int | None = None
    environment: str = ""
    component: str = ""
    cuda: str = ""
    infiniband: bool = False


def requirements(job: Any, graph: Graph) -> list[Requirements]:
    """Return the requirements of each step of the SDK's job, including those of nested pipelines. A command job is its
    only step.

    graph: of the job's plan. A step that is missing in it, such as a sweep of a registered component, is read
           separately
    """
    planned = dict(_by_path(graph))
    if not isinstance(job, internals.PipelineJob) and len(planned) == 1:
        planned = {"": next(iter(planned.values()))}
    return [_of_step(step, planned.get(step.path) or read_step(step.path, step.node)) for step in job_steps(job)]


def _by_path(graph: Graph, path: str = "") -> Iterator[tuple[str, Step]]:
    """Yield the steps of a graph by their paths in the SDK's job, where the body of a loop is beside the loop."""
    for node in graph.nodes:
        inner = node.body if isinstance(node, (DoWhile, ParallelFor, Sweep)) else node
        if isinstance(inner, Step):
            yield f"{path}{inner.name}", inner
        elif isinstance(inner, Pipeline):
            yield from _by_path(inner.graph, f"{path}{inner.name}.")


def _of_step(step: JobStep, planned: Step | None) -> Requirements:
    node, component = step.node, internals.component(step.node)
    environment = vars(node).get("environment") or getattr(component, "environment", None)
    # A node has every attribute. Only those of its class have a meaning.
    queue = node.queue_settings if hasattr(type(node), "queue_settings") else None
    processes, cuda, infiniband = None, "", False
    if planned is not None:
        variables = {name: str(value) for name, value in planned.environment_variables.items()}
        cuda, infiniband = cuda_version(planned.environment), traps.asks_for_infiniband(variables)
        if hasattr(planned.distribution, "process_count_per_instance"):
            processes = max(processes_per_instance(planned.distribution), 1)
    return Requirements(
        where=f"step {step.path}" if step.path else "the job",
        compute=step.compute,
        size=step.size,
        instances=max(planned.instance_count, 1) if planned else 1,
        low_priority=str(getattr(queue, "job_tier", None)).lower() == "spot",
        processes=processes,
        environment=environment if isinstance(environment, str) else "",
        component=component if isinstance(component, str) else "",
        cuda=cuda,
        infiniband=infiniband,
    )
