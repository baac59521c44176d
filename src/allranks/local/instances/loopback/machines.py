"""Machines that are addresses on 127.0.0.0/8: nothing but the hostname is isolated, everything works everywhere."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from allranks.local.instances import kernel


class LoopbackMachines:
    """The keeper is an ordinary child; as a subreaper it inherits, and in the end kills, whatever its ranks leave
    behind."""

    def fork(self, index: int, address: str) -> int:  # noqa: ARG002 - every loopback machine is this machine
        return os.fork()

    def prepare(self, index: int) -> None:  # noqa: ARG002
        kernel.become_subreaper()

    def enter(self, machine: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            _own_hostname(machine["hostname"])


def _own_hostname(name: str) -> None:
    """Open MPI takes ranks with one hostname for ranks of one machine. Raise OSError if that is not allowed."""
    try:
        kernel.unshare(kernel.NEWUTS)
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        kernel.unshare(kernel.NEWUSER | kernel.NEWUTS)
        kernel.map_identity(user, user, group, group)
    kernel.set_hostname(name)
