"""The steps of the SDK's job, also those of nested pipelines, each with the compute that it runs on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from allranks.sdk import internals


@dataclass(frozen=True)
class JobStep:
    """A node other than a nested pipeline: a step, or a decision between steps.

    path:    its name, after those of the pipelines that it is in; "" for a job by itself
    node:    the SDK's
    compute: as the job names it: the step's own, else that of the innermost pipeline that has one; "" if none has
    """

    path: str
    node: Any
    compute: str

    @property
    def kind(self) -> str:
        """Return the name of the node's class: Command, Parallel, Sweep, Spark."""
        return type(self.node).__name__


def job_steps(job: Any) -> Iterator[JobStep]:
    """Yield the steps of the SDK's job. A job that is no pipeline is its only step."""
    return _steps("", job, "")


def _steps(path: str, node: Any, inherited: str) -> Iterator[JobStep]:
    nodes = _nodes(node)
    if nodes is None:
        yield JobStep(path, node, _text(vars(node).get("compute")) or inherited)
        return
    settings = getattr(node, "settings", None)
    compute = _text(getattr(node, "compute", None) or getattr(settings, "default_compute", None)) or inherited
    for name, each in nodes.items():
        yield from _steps(f"{path}.{name}" if path else name, each, compute)


def _nodes(job: Any) -> Mapping[str, Any] | None:
    """Return the nodes of a pipeline job or of a node that is a pipeline component on this machine; None for a step."""
    from azure.ai.ml.entities import PipelineJob

    if isinstance(job, PipelineJob):
        return dict(job.jobs)
    inner = getattr(internals.component(job), "jobs", None)
    return dict(inner) if type(job).__name__ == "Pipeline" and isinstance(inner, dict) else None


def _text(compute: Any) -> str:
    return str(compute).removeprefix("azureml:") if compute else ""
