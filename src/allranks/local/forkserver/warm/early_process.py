"""The process that imports packages before it is known whether a run needs them, with the standard library alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path

from allranks.local.forkserver.warm.server import serve
from allranks.local.instances.kernel import die_with_parent


def main(path: str, engine: str) -> None:
    """Import the modules of the specs on stdin, and lend starters at a socket until this process is terminated.

    engine: the process id of the engine
    """
    signal.signal(signal.SIGTERM, _end)
    die_with_parent()
    if os.getppid() == int(engine):
        with contextlib.suppress(KeyboardInterrupt):
            serve(Path(path), float("inf"), lambda _: None, json.load(sys.stdin))


def _end(*_: object) -> None:
    raise KeyboardInterrupt
