"""Instances that are addresses in 127.0.0.0/8. They work on every machine, and share its ports and files. Each has its
own hostname."""

import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from allranks.local.instances import kernel
from allranks.local.instances.instance import HOSTS, AgentIsolation, Instance, InstanceKind, bind_text, hosts_text


class Loopback(InstanceKind):
    """The kind of instances on loopback addresses, for the engine."""

    name = "loopback"
    isolation = "allranks.local.instances.loopback:LoopbackIsolation"
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


class LoopbackAgentIsolation:
    """Fork agents as ordinary child processes. Each agent is a subreaper: it adopts the processes that its ranks leave
    behind, and kills them when the step ends."""

    def __init__(self, network: int | None) -> None:
        """Do nothing: all loopback instances are this machine."""

    def fork(self) -> int:
        return os.fork()

    def enter(self, instance: dict[str, Any]) -> None:
        """Give this process its own hostname, because Open MPI treats ranks with the same hostname as ranks on one
        host, and names for the addresses of the instances."""
        kernel.become_subreaper()
        with contextlib.suppress(OSError):  # it may not be permitted
            _own_hostnames()
            kernel.set_hostname(instance["hostname"])
            with open(HOSTS, encoding="utf-8") as file:
                content = file.read()
            kernel.unshare(kernel.NEWNS)
            # What is mounted on this machine later is also visible here, but not the other way round.
            kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_SLAVE)
            bind_text(f"{content.rstrip()}\n{hosts_text(instance['hosts'])}", instance["temporary"])


class LoopbackIsolation:
    """The instances share this machine's network."""

    agent: ClassVar[type[AgentIsolation]] = LoopbackAgentIsolation

    def __init__(self, *, online: bool) -> None:
        """Do nothing: the network of this machine cannot be disabled."""

    def connect(self, index: int, address: str) -> None:  # noqa: ARG002 - all loopback instances are this machine
        return

    def listen(self) -> socket.socket:
        return socket.create_server(("127.0.0.1", 0))


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


def _own_hostnames() -> None:
    """Give this process its own UTS namespace. Raise OSError if that is not permitted."""
    try:
        kernel.unshare(kernel.NEWUTS)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEWUSER | kernel.NEWUTS)
        kernel.map_identity(user, user, group, group)
