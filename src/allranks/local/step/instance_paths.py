"""The paths of this machine that an instance needs, also if they are below its own /tmp."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path

from allranks.local import interpreters
from allranks.local.boot import SOURCE
from allranks.local.step.staging import Ports
from allranks.plan.ports import PRIMITIVES
from allranks.plan.values import Given


class InstancePaths:
    """The paths for the steps of one run. workspace: the workspace's folder"""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        # Cached for the run, because it reads several folders.
        self._of_interpreter = functools.cache(self._read_interpreter)

    def of(self, interpreter: Path, resolved: Sequence[Given], ports: Ports) -> tuple[str, ...]:
        """Return the existing paths that an instance of a step needs: the workspace, the interpreter, the engine's
        source, the step's data, and the parents of its outputs."""
        data = [port.value for port in resolved if port.value is not None and port.type not in PRIMITIVES]
        parents = [os.path.dirname(path) for path in ports.outputs.values()]
        return (*self._of_interpreter(interpreter), *(path for path in (*data, *parents) if os.path.exists(path)))

    def _read_interpreter(self, interpreter: Path) -> tuple[str, ...]:
        paths = (self._workspace, *interpreters.prefixes(interpreter), SOURCE)
        return tuple(path for path in paths if os.path.exists(path))
