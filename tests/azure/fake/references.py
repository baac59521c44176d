"""Ids of assets as they stand in bodies, and whether what they name exists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from allranks_client.messages import user_error
from fake.names import REGISTRY, WORKSPACE

if TYPE_CHECKING:
    from fake.service import FakeAzure

_WORKSPACE = re.compile(
    r"(?:azureml:)?/subscriptions/[^/]+/resourcegroups/[^/]+/providers/microsoft\.machinelearningservices/workspaces/"
    r"(?P<scope>[^/]+)/(?P<kind>\w+)/(?P<name>[^/]+)(?:/(?P<by>versions|labels)/(?P<version>[^/]+))?",
    re.IGNORECASE,
)
_REGISTRY = re.compile(
    r"azureml://registries/(?P<scope>[^/]+)/(?P<kind>\w+)/(?P<name>[^/]+)/(?P<by>versions|labels)/(?P<version>[^/]+)",
    re.IGNORECASE,
)
_PUBLIC = ("azureml", "azureml-meta", "HuggingFace")
"""Microsoft's own registries, whose content the fake takes as given."""


@dataclass(frozen=True)
class Reference:
    """registry: "" for the workspace"""

    kind: str
    name: str
    version: str
    by_label: bool = False
    registry: str = ""


def parse(text: str) -> Reference | None:
    """The reference that an id is, or None where it is none."""
    for pattern in (_WORKSPACE, _REGISTRY):
        match = pattern.fullmatch(text.strip())
        if match:
            kind = "data" if match["kind"].lower() == "datasets" else match["kind"].lower()
            registry = match["scope"] if pattern is _REGISTRY else ""
            if not registry and match["scope"] != WORKSPACE:
                return None
            by_label = (match["by"] or "").lower() == "labels"
            return Reference(kind, match["name"], match["version"] or "", by_label, registry)
    return None


def check_reference(azure: FakeAzure, reference: Reference | None) -> None:
    """Raises Refusal where it names nothing."""
    if reference is None:
        raise user_error("This is not a valid asset id.")
    if reference.registry in _PUBLIC:
        return
    if reference.registry not in ("", REGISTRY):
        raise user_error(f"Registry {reference.registry} was not found.")
    assets = azure.registry if reference.registry else azure.assets
    if reference.by_label:
        assets.versions(reference.kind, reference.name)
    else:
        assets.get(reference.kind, reference.name, reference.version)
