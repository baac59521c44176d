"""Instances that are Linux namespaces: each has its own address, hostname, ports, processes, /tmp and /dev/shm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from allranks.contract.variables import MASTER_PORT
from allranks.local.instances.instance import Instance


class Rack:
    name = "rack"
    isolation = "allranks.local.instances.rack.isolation:RackIsolation"
    interface = "eth0"
    isolated = True

    def instances(self, indexes: Sequence[int]) -> tuple[Instance, ...]:
        return tuple(Instance(index, _address(index), f"node-{rank}") for rank, index in enumerate(indexes))

    def master_port(self, master: Instance) -> int:  # noqa: ARG002 - no other instance uses the master's ports
        return MASTER_PORT

    def ports(self, count: int) -> tuple[int, ...]:  # noqa: ARG002
        return ()

    def environment(self) -> Mapping[str, str]:
        return {}


def _address(index: int) -> str:
    # 10.77.0.0/16 exists inside the rack only. The first instance is 10.77.0.10.
    high, low = divmod(index + 10, 256)
    return f"10.77.{high}.{low}"
