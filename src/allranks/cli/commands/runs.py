"""`allranks runs`: list the runs of a workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from allranks.cli.options import FolderOption, JsonOption


def runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Number of runs, the newest first.")] = 20,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """List the runs of this workspace, the newest first."""
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.cli.views.tables import print_runs
    from allranks.runs import history
    from allranks.runs.workspace import Workspace

    records = history.runs(Workspace.at(workspace), limit, steps=json)
    if json:
        print(to_json(records))
    else:
        print_runs(console(), records)
