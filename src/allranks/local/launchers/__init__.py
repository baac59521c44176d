"""How the ranks of each distribution type are started: one module for each way, and the table."""

from __future__ import annotations

from allranks.local.launchers import per_process
from allranks.local.launchers.start import Launcher, Start

LAUNCHERS: dict[str, Launcher] = {"none": per_process.starts, "pytorch": per_process.starts}
"""By distribution type. A type that is missing here is refused by `allranks.local.check`."""

__all__ = ["LAUNCHERS", "Launcher", "Start"]
