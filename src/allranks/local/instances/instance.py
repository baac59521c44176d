"""An emulated instance, and the interface of a kind of instance: the engine's, the supervisor's and the agent's part.

The supervisor and the agents import the modules of the kinds too. These modules import only fast parts of the standard
library, so that those processes start in milliseconds.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol

from allranks.local.instances import kernel


class Instance(NamedTuple):
    """An emulated instance of a step.

    index: number of the instance within the run. Steps that run at the same time have different indexes.
    """

    index: int  # type: ignore[assignment]  # it hides the method of a tuple
    address: str
    hostname: str


class InstanceKind(Protocol):
    """The properties of a kind of instance."""

    name: str

    isolation: str
    """The class of the supervisor's part, as ``MODULE:CLASS``."""

    interface: str
    """The network interface that connects the instances."""

    isolated: bool
    """Whether each instance has its own ports, hostname, mounts and /tmp."""

    def instances(self, indexes: Sequence[int]) -> tuple[Instance, ...]:
        """Return the instances of a step with these indexes. The first one is the master."""

    def master_port(self, master: Instance) -> int:
        """Return a free port on the master."""

    def ports(self, count: int) -> tuple[int, ...]:  # noqa: ARG002 - of a kind whose instances share ports
        """Return `count` different free ports if the instances share ports, else none."""
        return ()

    def environment(self) -> Mapping[str, str]:
        """Return variables that a process needs on these instances and that Azure ML does not set."""
        return {}


class Isolation(Protocol):
    """The isolation of one kind. The supervisor constructs it once per run. The constructor raises OSError if this
    machine does not support the kind.

    agent: its part for an agent
    """

    agent: ClassVar[type[AgentIsolation]]

    def __init__(self, *, online: bool) -> None:
        """online: whether instances may access the network of this machine"""

    def connect(self, index: int, address: str) -> int | None:
        """Return the descriptor of the network of the instance of that index, which exists until the run ends; None if
        the instances have no network of their own. Raise OSError on failure."""

    def listen(self) -> socket.socket:
        """Return a listening socket that all instances reach. Raise OSError on failure."""


class AgentIsolation(Protocol):
    """The part of an isolation that acts in the process that forks an agent, and in the agent."""

    def __init__(self, network: int | None) -> None:
        """network: the descriptor of the instance's network, of `Isolation.connect`"""

    def fork(self) -> int:
        """Fork an agent. Return its process id, or 0 in the agent. Raise OSError, in the parent only, if that fails."""

    def enter(self, instance: dict[str, Any]) -> None:
        """Isolate this process as the step's instance. Called in the agent. Raise OSError on failure."""


def find(name: str) -> type[Isolation]:
    """Import the class ``MODULE:CLASS``, the `isolation` of a kind of instances."""
    module, _, member = name.partition(":")
    isolation: type[Isolation] = getattr(import_module(module), member)
    return isolation


HOSTS = "/etc/hosts"


def hosts_text(hosts: Iterable[Sequence[str]], mapped_suffix: str = "") -> str:
    """Return the lines for hosts, which are pairs (address, name).

    A server that accepts IPv4 and IPv6 sees an IPv4 client by its IPv4-mapped address, ``::ffff:10.77.0.10``. glibc
    finds the name of such an address only in a line of its own. Without one it asks a name server, which an instance of
    the rack cannot reach, and torch then writes "[c10d] The hostname of the client socket cannot be retrieved".

    mapped_suffix: appended to the name of the mapped address. Where names are not addresses, the names must differ, or
                   a look-up of the name would also return the mapped address.
    """
    return "".join(f"{address} {name}\n::ffff:{address} {name}{mapped_suffix}\n" for address, name in hosts)


def bind_text(content: str, folder: str, target: str = HOSTS) -> None:
    """Mount a file with this content over the target, in this process's mount namespace.

    folder: the folder for the file, whose name is removed afterwards. Raise OSError on failure.
    """
    source = f"{folder}/.{os.path.basename(target)}-{os.getpid()}"
    try:
        with open(source, "x", encoding="utf-8") as file:
            file.write(content)
        kernel.mount(source, target, flags=kernel.MS_BIND)
    finally:
        if os.path.exists(source):
            os.unlink(source)
