"""Machines that are addresses on 127.0.0.0/8: nothing is isolated, everything works everywhere."""

from __future__ import annotations

import os
from typing import Any

from allranks.local.supervision.kernel import become_subreaper


class LoopbackMachines:
    """The keeper is an ordinary child; as a subreaper it inherits, and in the end kills, whatever its ranks leave
    behind."""

    def fork(self, machine: dict[str, Any]) -> int:  # noqa: ARG002 - every loopback machine is this machine
        return os.fork()

    def enter(self, machine: dict[str, Any]) -> None:  # noqa: ARG002
        become_subreaper()
