"""Isolation of loopback instances: each has its own hostname and shares everything else with this machine."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from allranks.local.instances import kernel


class LoopbackIsolation:
    """Fork agents as ordinary child processes. Each agent is a subreaper: it adopts the processes that its ranks leave
    behind, and kills them when the step ends."""

    reusable = True

    def __init__(self) -> None:
        self.hostname = ""

    def fork(self, index: int, address: str) -> int:  # noqa: ARG002 - all loopback instances are this machine
        return os.fork()

    def prepare(self, index: int) -> None:  # noqa: ARG002
        kernel.become_subreaper()

    def enter(self, instance: dict[str, Any]) -> None:
        """Give this process its own hostname, because Open MPI treats ranks with the same hostname as ranks on one
        host."""
        name = instance["hostname"]
        if name == self.hostname:
            return
        with contextlib.suppress(OSError):  # it may not be permitted
            if not self.hostname:
                _own_hostnames()
            kernel.set_hostname(name)
            self.hostname = name


def _own_hostnames() -> None:
    """Let this process have a hostname of its own. Raise OSError if that is not permitted."""
    try:
        kernel.unshare(kernel.NEWUTS)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEWUSER | kernel.NEWUTS)
        kernel.map_identity(user, user, group, group)
