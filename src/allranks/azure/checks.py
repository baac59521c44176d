"""Check that a workspace has what a job requires: computes and capacity, environments and components."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from allranks.azure import hardware_needs
from allranks.azure.changes import SERVERLESS
from allranks.azure.errors import service_errors
from allranks.azure.requirements import Requirements
from allranks.errors import Problem
from allranks.hardware import sizes

_NOT_CLUSTERS = (SERVERLESS, "local")
_ASSET = re.compile(r"(?:azureml:)?(?P<name>[^/:@]+)(?::(?P<version>[^/:@]+)|@(?P<label>[^/:@]+))?")
_CURATED = "AzureML-"
_WITH_COMPUTE = "--compute NAME, or --size SIZE for serverless"


def of_sizes(required: list[Requirements]) -> list[Problem]:
    """Return what the steps cannot have on their sizes, without contacting Azure: more processes than GPUs, a CUDA that
    does not run on the GPUs, InfiniBand. Unknown sizes have none."""
    return [problem for step in required for problem in _of_size(step)]


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
        *_of_quota(client, required),
        *_of_assets(client.environments, "environment", "allranks register", required),
        *_of_assets(client.components, "component", "allranks register", required),
    ]


def _of_size(step: Requirements) -> Iterator[Problem]:
    size = sizes.known(step.size) if step.size and not _is_cluster(step.compute) else None
    if size is not None:
        yield from _too_many_processes(step, size)
        yield from hardware_needs.problems(step.where, size, step.hardware)


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
    named = dict.fromkeys(step.compute for step in required if _is_cluster(step.compute))
    if not named:
        return
    with service_errors("looking at the computes of the workspace"):
        known = {compute.name: compute for compute in client.compute.list()}
    lower = {name.lower(): name for name in known}
    for name in named:
        steps = [step for step in required if step.compute == name]
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
        )
    size = sizes.known(getattr(cluster, "size", None) or "")
    if size is not None:
        yield from _too_many_processes(step, size)
        yield from hardware_needs.problems(step.where, size, step.hardware)


def _of_quota(client: Any, required: list[Requirements]) -> Iterator[Problem]:
    """Check that the total quota allows a serverless step. Quota that is in use now only delays the step."""
    serverless = [step for step in required if step.size and not _is_cluster(step.compute)]
    if not serverless:
        return
    with service_errors("looking at the quota of the subscription"):
        location = client.workspaces.get(client.workspace_name).location
        families = {size.name.lower(): size for size in client.compute.list_sizes(location=location)}
        limits = {
            str(usage.name["value"]).lower(): usage.limit for usage in client.compute.list_usage(location=location)
        }
    for step in serverless:
        size = families.get(step.size.lower())
        if size is None:
            found = f"{step.size} is not available in {location}"
            yield Problem(
                f"{step.where}, key resources.instance_type", found, "a size of the region", _near(step, families)
            )
            continue
        limit = limits.get(str(size.family).lower())
        cores = step.instances * int(vars(size).get("vCPUs") or vars(size).get("v_cp_us") or 0)
        if limit is not None and cores > limit >= 0:
            yield Problem(
                f"{step.where}, key resources.instance_type",
                f"{step.instances} x {step.size} have {cores} cores; the quota for {size.family} is {limit}",
                f"at most {limit} cores",
                "fewer instances, another size, or ask for more quota in the studio: Manage > Quota",
                code="quota",
            )


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


def _near(step: Requirements, families: dict[str, Any]) -> str:
    similar = difflib.get_close_matches(step.size.lower(), list(families), n=3, cutoff=0.4)
    return f"for example {', '.join(families[name].name for name in similar)}" if similar else "see: allranks sizes"


def _is_cluster(compute: str) -> bool:
    return bool(compute) and compute.lower() not in _NOT_CLUSTERS and "${{" not in compute
