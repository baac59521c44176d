"""Where an emulated machine lives: one module for each kind, and the table of kinds."""

from __future__ import annotations

from allranks.local.instances import loopback, rack
from allranks.local.instances.instance import Instance, InstanceKind

INSTANCE_KINDS: dict[str, InstanceKind] = {"rack": rack.Rack(), "loopback": loopback.Loopback()}
"""In the order in which they are preferred."""

__all__ = ["INSTANCE_KINDS", "Instance", "InstanceKind"]
