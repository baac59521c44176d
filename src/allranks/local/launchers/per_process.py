"""The platform itself starts every process, each with its own variables: distribution type pytorch, and jobs without a
distribution."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from allranks.contract.launch import Launch, processes
from allranks.local.launchers.start import Start


def starts(launch: Launch, commands: Sequence[str]) -> tuple[Start, ...]:
    """One shell for each process of the launch. commands: the command as it reads on each instance."""
    shell = shutil.which("bash") or "/bin/sh"
    return tuple(Start(process, (shell, "-c", commands[process.instance_rank])) for process in processes(launch))
