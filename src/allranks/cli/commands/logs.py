"""`allranks logs`: print the logs of the ranks of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from allranks.cli.options import FolderOption, JsonOption, RunArgument, StepArgument


def logs(
    identity: RunArgument = "latest",
    step: StepArgument = None,
    rank: Annotated[
        int | None, typer.Option("--rank", min=0, help="Number of a rank. Default: all ranks.", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines until the run ends.")] = False,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Print the logs of the ranks of a run.

    If there are several logs, each line begins with its step and rank. For a run that was submitted to Azure ML, new
    lines are downloaded first. --json prints an array with one object per rank: step, rank, log (the path of the file),
    and lines.
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
