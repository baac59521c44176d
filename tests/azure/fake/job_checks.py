"""What the service checks of a job before it takes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from allranks_client.messages import Refusal, user_error
from fake.computes import SIZES
from fake.names import in_workspace
from fake.references import check_reference, parse
from fake.workspaces import DATASTORES

if TYPE_CHECKING:
    from fake.service import FakeAzure

_COMPUTE = re.compile(re.escape(in_workspace("computes", "")) + r"(?P<name>[^/]+)", re.IGNORECASE)
_DATASTORE = re.compile(r"azureml://(?:subscriptions/.*/)?datastores/(?P<name>[^/]+)/paths/")
_KINDS = ("Pipeline", "Command", "Sweep")
_BINDING = "${{"


def check_job(azure: FakeAzure, properties: dict[str, Any]) -> None:
    """Raises Refusal at the first thing that is wrong."""
    kind = properties.get("jobType")
    if kind not in _KINDS:
        raise user_error(f"The fake runs no job of type {kind}.")
    settings = properties.get("settings") or {}
    for compute in (properties.get("computeId"), settings.get("default_compute")):
        _check_compute(azure, compute)
    for port in (properties.get("inputs") or {}).values():
        _check_data(azure, port)
    if kind != "Pipeline":
        _check_command(azure, {**properties, **(properties.get("trial") or {})})
        return
    for name, node in properties["jobs"].items():
        _check_node(azure, name, node, properties)


def _check_command(azure: FakeAzure, properties: dict[str, Any]) -> None:
    for key in ("environmentId", "codeId"):
        _check_id(azure, properties.get(key), key)
    resources = properties.get("resources") or {}
    _check_room(azure, properties.get("computeId"), resources.get("instanceCount"), resources.get("instanceType"))


def _check_node(azure: FakeAzure, name: str, node: dict[str, Any], pipeline: dict[str, Any]) -> None:
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
        raise user_error(f"Node name '{name}' is invalid.")
    if node.get("type") not in (None, "command", "pipeline"):
        return
    if not node.get("componentId"):
        raise user_error(f"Node {name} has no component.")
    try:
        _check_id(azure, node["componentId"], f"jobs.{name}.componentId")
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        raise Refusal(404, "NotFound", f"key: {node['componentId']}, Message: {refusal.message}") from None
    settings = pipeline.get("settings") or {}
    compute = node.get("computeId") or pipeline.get("computeId") or settings.get("default_compute")
    resources = node.get("resources") or {}
    if node.get("computeId"):
        _check_compute(azure, node["computeId"])
    if node.get("type") == "command":
        count = _settled(resources.get("instance_count"), pipeline)
        _check_room(azure, compute, count, resources.get("instance_type"))


def _settled(value: Any, pipeline: dict[str, Any]) -> Any:
    match = re.fullmatch(r"\$\{\{\s*parent\.inputs\.([\w.]+)\s*}}", str(value))
    if match:
        return ((pipeline.get("inputs") or {}).get(match[1]) or {}).get("value")
    return value


def _check_compute(azure: FakeAzure, compute: Any) -> None:
    if not isinstance(compute, str) or compute.lower() in ("serverless", "local") or _BINDING in compute:
        return
    match = _COMPUTE.fullmatch(compute)
    name = match["name"] if match else compute
    if match and name == "serverless":  # so the SDK sends a pipeline's default
        return
    if match is None or name not in azure.computes:
        raise user_error(f"Unknown compute target '{name}'.")


def _check_room(azure: FakeAzure, compute: Any, count: Any, size: Any) -> None:
    """Whether the cluster has so many nodes, or the subscription so many cores."""
    wanted = int(count) if str(count or "").isdecimal() else 1
    match = _COMPUTE.fullmatch(compute) if isinstance(compute, str) else None
    if match and match["name"] in azure.computes:
        cluster = azure.computes[match["name"]]
        if wanted > cluster.most_nodes:
            raise user_error(
                f"The specified node count {wanted} exceeds the maximum node count {cluster.most_nodes} of compute "
                f"target {cluster.name}."
            )
        return
    if not isinstance(size, str) or _BINDING in size:
        return
    known = {name.lower(): spec for name, spec in SIZES.items()}.get(size.lower())
    if known is None:
        raise user_error(f"The instance type {size} is not supported in this region.")
    cores = wanted * int(known["vCPUs"])
    limit = azure.core_limits.get(str(known["family"]), 100)
    if cores > limit:
        message = (
            f"The requested {cores} cores exceed the quota of {limit} cores for family {known['family']}. Request an "
            "increase of quota."
        )
        raise Refusal(400, "QuotaExceeded", message)


def _check_id(azure: FakeAzure, text: Any, where: str) -> None:
    if not isinstance(text, str):
        return
    found = parse(text)
    if found is None:
        raise user_error(f"{where}: '{text}' is not a valid asset id.")
    check_reference(azure, found)


def _check_data(azure: FakeAzure, port: Any) -> None:
    if not isinstance(port, dict) or not isinstance(port.get("uri"), str):
        return
    uri = port["uri"]
    match = _DATASTORE.match(uri)
    if match and match["name"] not in DATASTORES:
        raise Refusal(404, "UserError", f"Could not find datastore with name {match['name']}.")
    if found := parse(uri):
        check_reference(azure, found)
