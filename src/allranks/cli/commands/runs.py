"""`allranks runs`: list the runs of a workspace."""

from enum import StrEnum
from typing import Annotated

import typer

from allranks.cli.console import console, to_json
from allranks.cli.options import FolderOption, JsonOption, option
from allranks.cli.values import moment
from allranks.cli.views.runs import print_runs
from allranks.history import stored
from allranks.history.records import Status
from allranks.workspace import Workspace


class RunStatus(StrEnum):
    """The statuses of runs, without that of a skipped step."""

    NOT_STARTED = "NotStarted"
    PREPARING = "Preparing"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"
    INTERRUPTED = "Interrupted"


def runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Number of runs, the newest first.")] = 20,
    status: Annotated[
        list[RunStatus] | None,
        option("--status", "List only runs in this state. May be repeated.", case_sensitive=False),
    ] = None,
    since: Annotated[
        str | None,
        option("--since", "List only runs that were created since then, such as 12h, 7d or 2026-07-04.", "AGE|DATE"),
    ] = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """List the runs of this workspace, the newest first.

    For example: allranks runs --status Failed --since 7d
    """
    begin = 0.0 if since is None else moment(since, "--since")
    statuses = tuple(Status(each.value) for each in status or Status)
    records = stored.runs(Workspace.at(folder), limit, statuses=statuses, since=begin, steps=json)
    if json:
        print(to_json(records))
    elif not records and (status or since):
        console().print("No run meets these conditions. List all with: allranks runs")
    else:
        print_runs(console(), records)
