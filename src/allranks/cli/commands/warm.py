"""`allranks warm`: keep processes with imported packages for the runs of a workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from allranks.cli.options import FolderOption
from allranks.runs.workspace import Workspace


def warm(
    idle_minutes: Annotated[
        float, typer.Option("--idle-minutes", min=0.0, help="Exit after this many minutes without a run that needs it.")
    ] = 30.0,
    workspace: FolderOption = None,
) -> None:
    """Keep imported packages in memory, so that runs start at once.

    The first run of a script imports its packages, and later runs in this workspace fork their ranks from the process
    that has done so. It runs until Ctrl-C, or until no run has needed it for `--idle-minutes`.
    """
    from allranks.local.forkserver.warm import serve

    place = Workspace.at(workspace)
    place.make()
    serve(place.warm, idle_minutes * 60, lambda text: print(text, flush=True))
