"""Check that a workspace has what a job requires: computes, quota, environments and components."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType
from typing import Any

from allranks.azure.errors import service_errors
from allranks.azure.requirements import ComputeId, Requirements
from allranks.errors import Problem, did_you_mean
from allranks.hardware import sizes, traps
from allranks.sdk import internals

_ASSET = re.compile(r"(?:azureml:)?(?P<name>[^/:@]+)(?::(?P<version>[^/:@]+)|@(?P<label>[^/:@]+))?")
_UNLISTED = ("AzureML-", "azureml_anonymous", "CliV2Anonymous")
_WITH_COMPUTE = "--compute NAME, or --size SIZE for serverless"


def of_sizes(required: list[Requirements], clusters: Mapping[str, str] = MappingProxyType({})) -> list[Problem]:
    """Return the problems of steps on their sizes, without contacting Azure: more processes than GPUs, an unsupported
    CUDA version, missing InfiniBand. Unknown sizes have none.

    clusters: the known sizes of clusters by their names in lower case
    """
    found: list[Problem] = []
    for step in required:
        compute = ComputeId.parse(step.compute)
        name = clusters.get(compute.name.lower(), "") if compute.is_cluster else step.size
        if name and (size := sizes.known(name)) is not None:
            found += _of_size(step, size)
    return found


def of_compute(steps: Sequence[str]) -> list[Problem]:
    """Return a problem for all steps without a compute."""
    if not steps:
        return []
    where = f"step {steps[0]}" if len(steps) == 1 else f"steps {', '.join(steps)}"
    return _no_compute(where, ";\nor name one in the pipeline: settings.default_compute")


def _no_compute(where: str, more: str = "") -> list[Problem]:
    expected, fix = "a cluster, or a size", f"{_WITH_COMPUTE}{more}"
    return [Problem(f"{where}, key compute", "no compute is given", expected, fix, code="no-compute")]


def of_workspace(client: Any, required: list[Requirements]) -> list[Problem]:
    """Return the problems of the steps in the workspace. client: the SDK's MLClient. Raise AzureError or InputError."""
    return [
        *(problem for step in required if not step.compute and not step.size for problem in _no_compute(step.where)),
        *_of_computes(client, required),
        *of_quota(client, required),
        *_of_assets(client.environments, "environment", required),
        *_of_assets(client.components, "component", required),
    ]


def _of_size(step: Requirements, size: sizes.Size) -> Iterator[Problem]:
    shared = traps.of_processes(size, step.processes) if step.processes and step.processes > size.gpus else ()
    unmet = (*traps.of_cuda(size, step.cuda), *traps.of_infiniband(size, date.today(), wanted=step.infiniband))
    for problem in (*shared, *unmet):
        yield replace(problem, where=f"{step.where}, key {problem.where}")


def _of_computes(client: Any, required: list[Requirements]) -> Iterator[Problem]:
    by_name: dict[str, list[Requirements]] = {}
    for step in required:
        # The service checks computes of other workspaces.
        if (compute := ComputeId.parse(step.compute)).is_of(client.workspace_name):
            by_name.setdefault(compute.name, []).append(step)
    if not by_name:
        return
    with service_errors("listing the computes of the workspace"):
        known = {compute.name: compute for compute in client.compute.list()}
    lower = {name.lower(): name for name in known}
    for name, steps in by_name.items():
        if name.lower() not in lower:
            yield Problem(
                f"{steps[0].where}, key compute",
                f"the workspace has no compute {name}",
                f"one of: {', '.join(known)}" if known else "a compute of the workspace, which has none",
                f"{did_you_mean(name, known)} {_WITH_COMPUTE}".strip(),
            )
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
    if (size := sizes.known(getattr(cluster, "size", None) or "")) is not None:
        yield from _of_size(step, size)


def _of_assets(operations: Any, kind: str, required: list[Requirements]) -> Iterator[Problem]:
    """Check that assets named ``azureml:NAME:VERSION`` exist. The service checks assets of registries."""
    named = dict.fromkeys(text for step in required if (text := getattr(step, kind)))
    for text in named:
        match = _ASSET.fullmatch(text)
        if match is None or match["name"].startswith(_UNLISTED):
            continue
        if (problem := _missing(operations, kind, match)) is not None:
            steps = [step for step in required if getattr(step, kind) == text]
            yield Problem(f"{steps[0].where}, key {kind}", *problem)


def _missing(operations: Any, kind: str, match: re.Match[str]) -> tuple[str, str, str] | None:
    name, version = match["name"], match["version"]
    with service_errors(f"looking up {kind} {name}"):
        try:
            versions = [str(asset.version) for asset in operations.list(name=name)]
        except internals.ResourceNotFoundError:
            versions = []
    if not versions:
        found = f"{kind} {name} is not registered in the workspace"
        return found, f"a registered {kind}", "allranks register, or correct the name"
    if version and version not in versions:
        known = f"one of: {', '.join(sorted(versions)[-5:])}"
        return f"{kind} {name} has no version {version}", known, "allranks register, or name an existing version"
    return None


def core_limit(usages: Iterable[Any], family: str, *, low_priority: bool) -> tuple[int, str] | None:
    """Return the lowest limit of a family of sizes, and the cores that it limits; None if there is no limit.

    usages: the SDK's Usage entities, as ``client.compute.list_usage`` yields them
    """
    cores, found = "low-priority cores" if low_priority else "dedicated cores", []
    for usage in usages:
        name = usage.name["value"] if isinstance(usage.name, Mapping) else usage.name.value
        kind = _squeezed(f"{usage.type or ''} {name}")
        is_of_cores = not usage.type or "cores" in usage.type.lower()  # else of a number of clusters
        if usage.limit is None or usage.limit < 0 or not is_of_cores or ("lowpriority" in kind) != low_priority:
            continue
        if "total" in kind:
            found.append((usage.limit, f"all {cores} of the region"))
        elif _family_key(str(name)) == _family_key(family):
            found.append((usage.limit, f"{cores} of {family}"))
    return min(found, default=None)


def of_quota(client: Any, required: list[Requirements]) -> Iterator[Problem]:
    """Yield the serverless steps that exceed the total quota. Quota that is in use now only delays a step.

    The service returns a row for each family of sizes, rows for the totals of the region by priority, and the same rows
    for the workspace, where -1 means that it has no limit.

    client: the SDK's MLClient. Raise AzureError or InputError.
    """
    serverless = [step for step in required if step.size and not ComputeId.parse(step.compute).is_cluster]
    if not serverless:
        return
    with service_errors("requesting the quota of the subscription"):
        location = client.workspaces.get(client.workspace_name).location
        available = {size.name.lower(): size for size in client.compute.list_sizes(location=location)}
        usages = list(client.compute.list_usage(location=location))
    for step in serverless:
        where = f"{step.where}, key resources.instance_type"
        size = available.get(step.size.lower())
        if size is None:
            similar = difflib.get_close_matches(step.size.lower(), list(available), n=3, cutoff=0.4)
            near = ", ".join(available[name].name for name in similar)
            fix = f"for example {near}" if near else "see: allranks doctor --sizes"
            yield Problem(where, f"{step.size} is not available in {location}", "a size of the region", fix)
            continue
        cores = step.instances * int(vars(size).get("vCPUs") or vars(size).get("v_cp_us") or 0)
        limit = core_limit(usages, str(size.family), low_priority=step.low_priority)
        if limit is not None and cores > limit[0]:
            yield Problem(
                where,
                f"{step.instances} x {step.size} have {cores} cores; the quota for {limit[1]} is {limit[0]}",
                f"at most {limit[0]} cores",
                "fewer instances, another size, or ask for more quota in the studio: Manage > Quota",
                code="quota",
            )


def _family_key(family: str) -> str:
    """Return the same key for every form of a family's name.

    Sizes have ``standardNCADSA100v4Family``, quota has ``Standard NCADSA100v4 Family Cluster Dedicated vCPUs``.
    """
    squeezed = _squeezed(family)
    start, found, _ = squeezed.partition("family")
    return start + found


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
