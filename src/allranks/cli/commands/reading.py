"""`allranks runs`, `allranks show` and `allranks logs`: what a workspace remembers."""

from __future__ import annotations

from typing import Annotated

import typer

from allranks.cli.options import FolderOption, JsonOption, RunArgument


def runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many, the newest first.")] = 20,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """List the runs of this workspace, the newest first."""
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console
    from allranks.cli.views.tables import print_runs
    from allranks.runs import history
    from allranks.runs.workspace import Workspace

    found = history.runs(Workspace.at(workspace))[:limit]
    if json:
        print(to_json(found))
    else:
        print_runs(console(), found)


def show(identity: RunArgument = "latest", workspace: FolderOption = None, json: JsonOption = False) -> None:
    """Show a run: its steps, metrics, outputs, and what failed.

    Of a run that was submitted to Azure ML, how it is now.
    """
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console
    from allranks.cli.submitted import finder
    from allranks.cli.views.tables import print_run

    record = finder(workspace)(identity)
    if json:
        print(to_json(record))
    else:
        print_run(console(), record)


def logs(
    identity: RunArgument = "latest",
    step: Annotated[
        str | None, typer.Argument(metavar="STEP", help="A step; without it, every step.", show_default=False)
    ] = None,
    rank: Annotated[
        int | None, typer.Option("--rank", min=0, help="One rank; without it, all.", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing while the run goes on.")] = False,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Print what the ranks of a run wrote.

    Each line begins with its step and rank where there are several. Of a run that was submitted to Azure ML, what is
    new is downloaded first. With --json, one array with an object for each rank: its step, rank, log (the path of the
    file), and lines.
    """
    from allranks.cli.submitted import finder
    from allranks.runs.log_reader import follow_logs, print_logs, print_logs_json

    find = finder(workspace)
    if json:
        print_logs_json(find, identity, step, rank)
    elif follow:
        follow_logs(find, identity, step, rank)
    else:
        print_logs(find, identity, step, rank)
