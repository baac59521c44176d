"""Instances that are addresses in 127.0.0.0/8. They work on every machine and share its ports and files."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping, Sequence

from allranks.local.instances.instance import Instance


class Loopback:
    name = "loopback"
    isolation = "allranks.local.instances.loopback.isolation:LoopbackIsolation"
    interface = "lo"
    isolated = False

    def instances(self, indexes: Sequence[int]) -> tuple[Instance, ...]:
        # The hostname is the address itself, so it always resolves.
        addresses = map(_address, range(len(indexes)))
        return tuple(Instance(index, address, address) for index, address in zip(indexes, addresses, strict=True))

    def master_port(self, master: Instance) -> int:
        # Another step, run or program may be using Azure ML's port 6105.
        return _free_ports(master.address, 1)[0]

    def ports(self, count: int) -> tuple[int, ...]:
        return _free_ports("", count)

    def environment(self) -> Mapping[str, str]:
        # Otherwise gloo resolves the hostname to an address that the other ranks may not reach.
        return {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}


def _address(rank: int) -> str:
    # All of 127.0.0.0/8 is this machine. The first instance is 127.0.0.1.
    middle, low = divmod(rank + 1, 256)
    return f"127.0.{middle}.{low}"


def _free_ports(address: str, count: int) -> tuple[int, ...]:
    with contextlib.ExitStack() as probes:
        # Every socket stays bound until the last port is found, so that the ports differ.
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind((address, 0))
        return tuple(int(probe.getsockname()[1]) for probe in sockets)
