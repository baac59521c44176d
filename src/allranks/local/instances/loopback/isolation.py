"""Isolation of loopback instances: each has its own hostname and shares everything else with this machine."""

from __future__ import annotations

import contextlib
import os
from typing import Any, ClassVar

from allranks.local.instances import hosts, kernel
from allranks.local.instances.agent.isolation import AgentIsolation


class LoopbackAgentIsolation:
    """Fork agents as ordinary child processes. Each agent is a subreaper: it adopts the processes that its ranks leave
    behind, and kills them when the step ends."""

    own_network: ClassVar[bool] = False

    def __init__(self, network: int | None) -> None:  # noqa: ARG002 - all loopback instances are this machine
        self.hostname = ""
        self.named_hosts = 0

    def fork(self) -> int:
        return os.fork()

    def prepare(self) -> None:
        kernel.become_subreaper()

    def enter(self, instance: dict[str, Any]) -> None:
        """Give this process its own hostname, because Open MPI treats ranks with the same hostname as ranks on one
        host, and names for the addresses of the instances."""
        name = instance["hostname"]
        with contextlib.suppress(OSError):  # it may not be permitted
            if name != self.hostname:
                if not self.hostname:
                    _own_hostnames()
                kernel.set_hostname(name)
                self.hostname = name
            self._name_hosts(instance["hosts"], instance["temporary"])

    def _name_hosts(self, instances: list[list[str]], folder: str) -> None:
        """Let the addresses of the step's instances have names. Raise OSError if that is not permitted."""
        if len(instances) <= self.named_hosts:
            return
        # The address of an instance does not depend on the step.
        names = hosts.text(instances)
        with open(hosts.FILE, "r+" if self.named_hosts else "r", encoding="utf-8") as file:
            content = file.read()
            if self.named_hosts:  # the file is this process's own
                file.write(names)
        if not self.named_hosts:
            kernel.unshare(kernel.NEWNS)
            # What is mounted on this machine later is also visible here, but not the other way round.
            kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_SLAVE)
            hosts.bind(f"{content.rstrip()}\n{names}", folder)
        self.named_hosts = len(instances)


class LoopbackIsolation:
    """The instances share this machine's network."""

    agent: ClassVar[type[AgentIsolation]] = LoopbackAgentIsolation

    def connect(self, index: int, address: str) -> None:  # noqa: ARG002 - all loopback instances are this machine
        return


def _own_hostnames() -> None:
    """Let this process have a hostname of its own. Raise OSError if that is not permitted."""
    try:
        kernel.unshare(kernel.NEWUTS)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEWUSER | kernel.NEWUTS)
        kernel.map_identity(user, user, group, group)
