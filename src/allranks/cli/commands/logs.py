"""`allranks logs`: print what the ranks of a run wrote."""

from __future__ import annotations

from typing import Annotated

import typer

from allranks.cli.options import FolderOption, JsonOption, RunArgument, StepArgument


def logs(
    identity: RunArgument = "latest",
    step: StepArgument = None,
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
    from allranks.azure.watch import finder
    from allranks.runs.log_reader import follow_logs, print_logs, print_logs_json

    find = finder(workspace)
    if json:
        print_logs_json(find, identity, step, rank)
    elif follow:
        follow_logs(find, identity, step, rank)
    else:
        print_logs(find, identity, step, rank)
