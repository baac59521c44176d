"""Import packages while a run is still being compiled: those that the last run of the same file used first.

It is the process of `allranks warm` for one run. `allranks run` of a script that imports torch took 5.8 s with it and
7.0 s without (medians of four alternating runs on two busy cores).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allranks.local import boot
from allranks.local.instances.programs import ForkServerSpec
from allranks.runs.workspace import Workspace, write_file
from allranks.secrets import is_secret_name

END_SECONDS = 5.0
"""How long the process may take to end. Then it is killed."""

MOST_FILES = 100
"""Maximum number of files whose fork servers are remembered."""


class EarlyForkServer:
    """A process that imports packages before it is known whether a run needs them, and lends fork servers to that run.

    Leaving the block ends it.

    socket: at which it lends fork servers; "" if there is no such process
    """

    def __init__(self, workspace: Workspace, file: str, *, enabled: bool) -> None:
        """
        file:    that the run is read from
        enabled: whether to start a process at all, and to remember the fork servers of this run
        """
        self._workspace = workspace
        self._file = os.path.abspath(file)
        self._enabled = enabled
        self._process: subprocess.Popen[bytes] | None = None
        self.socket = ""
        specs = _remembered(workspace).get(self._file, []) if enabled and not workspace.warm.exists() else []
        if specs:
            with contextlib.suppress(OSError):  # the run imports for itself
                self._start(specs)

    def remember(self, specs: Sequence[ForkServerSpec]) -> None:
        """Remember the fork servers that the run has used, the first one first."""
        if not self._enabled:
            return
        public = [vars(spec) for spec in specs if not any(is_secret_name(name) for name, _ in spec.environment)]
        known = _remembered(self._workspace)
        if known.pop(self._file, []) == json.loads(json.dumps(public[:1])):
            return
        known[self._file] = public[:1]
        with contextlib.suppress(OSError):  # the next run starts without them
            write_file(_path(self._workspace), json.dumps(dict(list(known.items())[-MOST_FILES:])), 0o600)

    def __enter__(self) -> EarlyForkServer:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._process is not None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
            self._process.kill()  # it was stopped, for example
            self._process.wait()
            Path(self.socket).unlink(missing_ok=True)

    def _start(self, specs: Sequence[dict[str, Any]]) -> None:
        for left in self._workspace.root.glob("early-*.sock"):
            if not os.path.exists(f"/proc/{left.stem.partition('-')[2]}"):  # its engine was killed
                left.unlink(missing_ok=True)
        socket = str(self._workspace.root / f"early-{os.getpid()}.sock")
        self._process = subprocess.Popen(
            boot.command("forkserver.warm", socket, str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal is for the engine
        )
        self.socket = socket
        assert self._process.stdin is not None
        with self._process.stdin as stream:
            stream.write(json.dumps(list(specs)).encode())


def _remembered(workspace: Workspace) -> dict[str, list[dict[str, Any]]]:
    try:
        known = json.loads(_path(workspace).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _path(workspace: Workspace) -> Path:
    return workspace.root / "fork_servers.json"
