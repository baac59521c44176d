"""Instances that are addresses on 127.0.0.0/8: they work everywhere, and share this machine's ports and files."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping, Sequence

from allranks.local.instances.instance import Instance


class Loopback:
    name = "loopback"
    machines = "allranks.local.instances.loopback.machines"
    interface = "lo"
    isolated = False

    def instances(self, indexes: Sequence[int]) -> tuple[Instance, ...]:
        # Who resolves a hostname finds the instance, since it is the address itself.
        return tuple(
            Instance(index, f"127.0.0.{rank + 1}", f"127.0.0.{rank + 1}") for rank, index in enumerate(indexes)
        )

    def master_port(self, master: Instance) -> int:
        # Azure ML's 6105 may be in use: by another step, another run, anything.
        return _free_ports(master.address, 1)[0]

    def ports(self, count: int) -> tuple[int, ...]:
        return _free_ports("", count)

    def environment(self) -> Mapping[str, str]:
        # gloo otherwise resolves the hostname, and finds an address that the other ranks may not reach.
        return {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}


def _free_ports(address: str, count: int) -> tuple[int, ...]:
    with contextlib.ExitStack() as probes:
        # All are held until the last is found, so that none is found twice.
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind((address, 0))
        return tuple(int(probe.getsockname()[1]) for probe in sockets)
