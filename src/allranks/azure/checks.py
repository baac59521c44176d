"""Check that a workspace has what a job requires: computes and capacity, environments and components."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from allranks.azure import requirements
from allranks.azure.compute_id import ComputeId
from allranks.azure.errors import service_errors
from allranks.azure.quota import of_quota
from allranks.azure.requirements import Requirements
from allranks.errors import Problem
from allranks.hardware import sizes

_ASSET = re.compile(r"(?:azureml:)?(?P<name>[^/:@]+)(?::(?P<version>[^/:@]+)|@(?P<label>[^/:@]+))?")
_CURATED = "AzureML-"
_WITH_COMPUTE = "--compute NAME, or --size SIZE for serverless"


def of_sizes(required: list[Requirements], clusters: Mapping[str, str] = MappingProxyType({})) -> list[Problem]:
    """Return what the steps cannot have on their sizes, without contacting Azure: more processes than GPUs, a CUDA that
    does not run on the GPUs, InfiniBand. Unknown sizes have none.

    clusters: the sizes of clusters by their names in lower case, if known
    """
    found: list[Problem] = []
    for step in required:
        compute = ComputeId.parse(step.compute)
        name = clusters.get(compute.name.lower(), "") if compute.is_cluster else step.size
        if name and (size := sizes.known(name)) is not None:
            found += _of_size(step, size)
    return found


def of_compute(steps: Sequence[str]) -> list[Problem]:
    """Return one problem for all steps for which no compute is named."""
    if not steps:
        return []
    where = f"step {steps[0]}" if len(steps) == 1 else f"steps {', '.join(steps)}"
    fix = f"{_WITH_COMPUTE};\nor name one in the pipeline: settings.default_compute"
    return [Problem(f"{where}, key compute", "no compute is given", "a cluster, or a size", fix, code="no-compute")]


def of_workspace(client: Any, required: list[Requirements]) -> list[Problem]:
    """Return what the workspace lacks for the steps. client: the SDK's MLClient. Raise AzureError or InputError."""
    return [
        *_without_compute(required),
        *_of_computes(client, required),
        *of_quota(client, required),
        *_of_assets(client.environments, "environment", "allranks register", required),
        *_of_assets(client.components, "component", "allranks register", required),
    ]


def _of_size(step: Requirements, size: sizes.Size) -> Iterator[Problem]:
    yield from _too_many_processes(step, size)
    yield from requirements.hardware_problems(step.where, size, step.hardware)


def _too_many_processes(step: Requirements, size: sizes.Size) -> Iterator[Problem]:
    if step.processes is not None and step.processes > size.gpus:
        gpus = "1 GPU" if size.gpus == 1 else f"{size.gpus} GPUs"
        yield Problem(
            f"{step.where}, key distribution.process_count_per_instance",
            f"{step.processes} processes on the {gpus} of {size.name}; NCCL rejects two ranks on one GPU",
            f"at most {size.gpus}",
            f"set process_count_per_instance to {size.gpus}, and instance_count to get as many ranks",
            code="shared-gpus",
        )


def _without_compute(required: list[Requirements]) -> Iterator[Problem]:
    for step in required:
        if not step.compute and not step.size:
            where, expected = f"{step.where}, key compute", "a cluster, or a size"
            yield Problem(where, "no compute is given", expected, _WITH_COMPUTE, code="no-compute")


def _of_computes(client: Any, required: list[Requirements]) -> Iterator[Problem]:
    by_name: dict[str, list[Requirements]] = {}
    for step in required:
        # The service knows the computes of other workspaces.
        if (compute := ComputeId.parse(step.compute)).is_of(client.workspace_name):
            by_name.setdefault(compute.name, []).append(step)
    if not by_name:
        return
    with service_errors("looking at the computes of the workspace"):
        known = {compute.name: compute for compute in client.compute.list()}
    lower = {name.lower(): name for name in known}
    for name, steps in by_name.items():
        if name.lower() not in lower:
            yield _unknown(steps, "compute", name, list(known), _WITH_COMPUTE)
            continue
        for step in steps:
            yield from _of_cluster(step, known[lower[name.lower()]])


def _of_cluster(step: Requirements, cluster: Any) -> Iterator[Problem]:
    max_instances = getattr(cluster, "max_instances", None)
    if max_instances is not None and step.instances > max_instances:
        yield Problem(
            f"{step.where}, key resources.instance_count",
            f"{step.instances} instances; {cluster.name} has at most {max_instances}",
            f"at most {max_instances}",
            "set fewer, or let the cluster grow: az ml compute update --max-instances",
            code="quota",
        )
    size = sizes.known(getattr(cluster, "size", None) or "")
    if size is not None:
        yield from _of_size(step, size)


def _of_assets(operations: Any, kind: str, command: str, required: list[Requirements]) -> Iterator[Problem]:
    """Check that assets named ``azureml:NAME:VERSION`` exist. Assets of registries are checked by the service."""
    named = dict.fromkeys(text for step in required if (text := getattr(step, kind)))
    for text in named:
        match = _ASSET.fullmatch(text)
        if match is None or match["name"].startswith(_CURATED):
            continue
        if (problem := _missing(operations, kind, command, match)) is not None:
            steps = [step for step in required if getattr(step, kind) == text]
            yield Problem(f"{steps[0].where}, key {kind}", *problem)


def _missing(operations: Any, kind: str, command: str, match: re.Match[str]) -> tuple[str, str, str] | None:
    from azure.core.exceptions import ResourceNotFoundError

    name, version = match["name"], match["version"]
    with service_errors(f"looking up {kind} {name}"):
        try:
            versions = [str(asset.version) for asset in operations.list(name=name)]
        except ResourceNotFoundError:
            versions = []
    if not versions:
        known = f"a registered {kind}"
        return f"{kind} {name} is not registered in the workspace", known, f"{command}, or correct the name"
    if version and version not in versions:
        known = f"one of: {', '.join(sorted(versions)[-5:])}"
        return f"{kind} {name} has no version {version}", known, f"{command}, or name an existing version"
    return None


def _unknown(steps: list[Requirements], kind: str, name: str, known: list[str], fix: str) -> Problem:
    similar = difflib.get_close_matches(name, known, n=1)
    expected = f"one of: {', '.join(known)}" if known else f"a {kind} of the workspace, which has none"
    return Problem(
        f"{steps[0].where}, key {kind}",
        f"the workspace has no {kind} {name}",
        expected,
        f"did you mean {similar[0]}? {fix}" if similar else fix,
    )
