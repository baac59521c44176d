"""The kinds of instances."""

from __future__ import annotations

from allranks.local.instances.instance import Instance, InstanceKind
from allranks.local.instances.loopback import Loopback
from allranks.local.instances.rack import Rack

INSTANCE_KINDS: dict[str, InstanceKind] = {"rack": Rack(), "loopback": Loopback()}
"""By name, in order of preference. A new kind is a module beside this file and one row here."""

__all__ = ["INSTANCE_KINDS", "Instance", "InstanceKind"]
