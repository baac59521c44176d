"""Check that the quota of the subscription allows the serverless steps of a job.

The service returns a row for each family of sizes, rows for the totals of the region by priority, and the same again
for the workspace, where -1 means that the workspace has no limit of its own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from allranks.azure.compute_id import ComputeId
from allranks.azure.errors import service_errors
from allranks.azure.requirements import Requirements
from allranks.errors import Problem

_TOTAL = "total"


@dataclass(frozen=True)
class CoreLimits:
    """The lowest limits, in cores, by family; of all families together under ``total``. Unlimited ones are missing."""

    dedicated: Mapping[str, int] = field(default_factory=dict)
    low_priority: Mapping[str, int] = field(default_factory=dict)

    def of(self, family: str, *, low_priority: bool) -> tuple[int, str] | None:
        """Return the limit that applies to a family, and what it is a limit of; None if there is none."""
        limits = self.low_priority if low_priority else self.dedicated
        kind = "low-priority cores" if low_priority else "dedicated cores"
        key = _key(family)
        found = [(limits[key], f"{kind} of {family}")] if key in limits else []
        found += [(limits[_TOTAL], f"all {kind} of the region")] if _TOTAL in limits else []
        return min(found, default=None)


def core_limits(usages: Iterable[Any]) -> CoreLimits:
    """Return the limits of the SDK's Usage entities, as ``client.compute.list_usage`` yields them."""
    dedicated: dict[str, int] = {}
    low_priority: dict[str, int] = {}
    for usage in usages:
        if usage.limit is None or usage.limit < 0:
            continue
        name = usage.name["value"] if isinstance(usage.name, Mapping) else usage.name.value
        if usage.type and "cores" not in usage.type.lower():
            continue  # a number of clusters, not of cores
        kind = _squeezed(f"{usage.type or ''} {name}")
        rows = low_priority if "lowpriority" in kind else dedicated
        key = _TOTAL if "total" in kind else _key(str(name))
        rows[key] = min(rows.get(key, usage.limit), usage.limit)
    return CoreLimits(dedicated, low_priority)


def of_quota(client: Any, required: list[Requirements]) -> Iterator[Problem]:
    """Yield the serverless steps that the total quota does not allow. Quota that is in use now only delays a step.

    client: the SDK's MLClient. Raise AzureError or InputError.
    """
    serverless = [step for step in required if step.size and not ComputeId.parse(step.compute).is_cluster]
    if not serverless:
        return
    with service_errors("looking at the quota of the subscription"):
        location = client.workspaces.get(client.workspace_name).location
        available = {size.name.lower(): size for size in client.compute.list_sizes(location=location)}
        limits = core_limits(client.compute.list_usage(location=location))
    for step in serverless:
        where = f"{step.where}, key resources.instance_type"
        size = available.get(step.size.lower())
        if size is None:
            found = f"{step.size} is not available in {location}"
            yield Problem(where, found, "a size of the region", _near(step, available))
            continue
        cores = step.instances * int(vars(size).get("vCPUs") or vars(size).get("v_cp_us") or 0)
        limit = limits.of(str(size.family), low_priority=step.low_priority)
        if limit is not None and cores > limit[0]:
            yield Problem(
                where,
                f"{step.instances} x {step.size} have {cores} cores; the quota for {limit[1]} is {limit[0]}",
                f"at most {limit[0]} cores",
                "fewer instances, another size, or ask for more quota in the studio: Manage > Quota",
                code="quota",
            )


def _key(family: str) -> str:
    """Return the same key for every form of a family's name.

    Sizes have ``standardNCADSA100v4Family``, quota has ``Standard NCADSA100v4 Family Cluster Dedicated vCPUs``.
    """
    squeezed = _squeezed(family)
    start, found, _ = squeezed.partition("family")
    return start + found


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _near(step: Requirements, available: Mapping[str, Any]) -> str:
    similar = difflib.get_close_matches(step.size.lower(), list(available), n=3, cutoff=0.4)
    return f"for example {', '.join(available[name].name for name in similar)}" if similar else "see: allranks sizes"
