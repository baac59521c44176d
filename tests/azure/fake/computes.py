"""Clusters, and how many cores the subscription has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allranks_client.emulation import resource, timestamp
from allranks_client.messages import Answer, Request
from fake.names import LOCATION, MANAGEMENT, SUBSCRIPTION, WORKSPACE_PATH
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

_LOCATIONS = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.MachineLearningServices/locations/{{location}}"


@dataclass
class Compute:
    """A cluster that grows from no node to its greatest number."""

    name: str
    size: str
    most_nodes: int
    least_nodes: int = 0
    state: str = "Succeeded"
    priority: str = "Dedicated"


SIZES: dict[str, dict[str, Any]] = {
    name: {
        "name": name,
        "family": family,
        "vCPUs": cores,
        "gpus": gpus,
        "osVhdSizeMB": 1047552,
        "maxResourceVolumeMB": disk,
        "memoryGB": memory,
        "lowPriorityCapable": True,
        "premiumIO": True,
        "supportedComputeTypes": ["AmlCompute"],
    }
    for name, family, cores, gpus, memory, disk in (
        ("Standard_D4s_v5", "standardDSv5Family", 4, 0, 16, 0),
        ("Standard_NC24ads_A100_v4", "standardNCADSA100v4Family", 24, 1, 220, 64000),
        ("Standard_NC96ads_A100_v4", "standardNCADSA100v4Family", 96, 4, 880, 256000),
        ("Standard_ND96asr_v4", "standardNDASv4Family", 96, 8, 900, 6000000),
    )
}


def body(compute: Compute) -> dict[str, Any]:
    """A cluster as the service shows it."""
    properties = {
        "computeType": "AmlCompute",
        "computeLocation": LOCATION,
        "createdOn": timestamp(),
        "modifiedOn": timestamp(),
        "isAttachedCompute": False,
        "provisioningState": compute.state,
        **dict.fromkeys(("description", "provisioningErrors", "resourceId")),
        "disableLocalAuth": False,
        "properties": {
            "vmSize": compute.size.upper(),
            "vmPriority": compute.priority,
            "scaleSettings": {
                "maxNodeCount": compute.most_nodes,
                "minNodeCount": compute.least_nodes,
                "nodeIdleTimeBeforeScaleDown": "PT2M",
            },
            "allocationState": "Steady",
            "currentNodeCount": compute.least_nodes,
            "targetNodeCount": compute.least_nodes,
            "osType": "Linux",
            "isolatedNetwork": False,
            **dict.fromkeys(("subnet", "errors", "virtualMachineImage")),
        },
    }
    made = resource(WORKSPACE_PATH, f"/computes/{compute.name}", properties, location=LOCATION, tags={})
    del made["systemData"]
    return made


@route(MANAGEMENT, "GET", "{workspace}/computes")
def list_computes(azure: FakeAzure, request: Request) -> Answer:
    return azure.page(request, [body(compute) for compute in azure.computes.values()])


@route(MANAGEMENT, "GET", "{workspace}/computes/{name}")
def get_compute(azure: FakeAzure, request: Request, name: str) -> Answer:
    if name not in azure.computes:
        return Answer(404)
    return Answer.of(body(azure.computes[name]))


@route(MANAGEMENT, "GET", f"{_LOCATIONS}/vmSizes")
def list_sizes(azure: FakeAzure, request: Request, location: str) -> Answer:
    return azure.page(request, list(SIZES.values()))


@route(MANAGEMENT, "GET", f"{_LOCATIONS}/usages")
def list_usages(azure: FakeAzure, request: Request, location: str) -> Answer:
    """Rows as the service has them: of the subscription and of the workspace, dedicated and low-priority, and totals.

    Family names are those of the quota page, not those of the sizes.
    """
    rows = []
    for family in _families():
        shown = f"{family.removesuffix('Family').replace('standard', 'Standard ')} Family Cluster Dedicated vCPUs"
        rows.append(_usage(shown, azure.core_limits.get(family, 100), "vmFamily/dedicatedCores"))
        rows.append(_usage(shown, -1, "workspaces/vmFamily/dedicatedCores"))
    rows.append(_usage("Total Cluster Dedicated Regional vCPUs", azure.total_cores, "totalDedicatedCores"))
    rows.append(_usage("TotalLowPriorityCores", azure.low_priority_cores, "totalLowPriorityCores"))
    return azure.page(request, rows)


def _families() -> list[str]:
    return list(dict.fromkeys(str(size["family"]) for size in SIZES.values()))


def _usage(shown: str, limit: int, of: str) -> dict[str, Any]:
    name = {"value": shown, "localizedValue": shown}
    kind = f"Microsoft.MachineLearningServices/{of}/usages"
    return {
        "name": name,
        "currentValue": 0,
        "limit": limit,
        "unit": "Count",
        "type": kind,
        "amlWorkspaceLocation": LOCATION,
    }
