"""`allranks runs`: list the runs of a workspace."""

from typing import Annotated

import typer

from allranks.cli.console import console, open_in_browser, print_result, print_warnings, to_json
from allranks.cli.options import FolderOption, JsonOption
from allranks.cli.parameters import option
from allranks.cli.values import moment
from allranks.cli.views.run_list import print_runs
from allranks.errors import Problem
from allranks.history import stored
from allranks.history.records import Status
from allranks.sdk.paths import shown
from allranks.workspace import Workspace

_COLUMNS = """Columns, in order: name, pipeline, state, created, time, where, names of inputs and of metrics. Default:
those that fit, with the main metric and the inputs that differ."""


def runs(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Number of runs, the newest first.")] = 20,
    status: Annotated[
        list[Status] | None, option("--status", "List only runs in this state. May be repeated.", case_sensitive=False)
    ] = None,
    since: Annotated[
        str | None,
        option("--since", "List only runs that were created since then, such as 12h, 7d or 2026-07-04.", "AGE|DATE"),
    ] = None,
    columns: Annotated[str, option("--columns", _COLUMNS, "NAME,...")] = "",
    page: Annotated[bool, option("--page", "Write a page of all runs, with their curves, into the workspace.")] = False,
    open_: Annotated[bool, option("--open", "Write the page, and open it in a browser.")] = False,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """List the runs of this workspace, the newest first.

    For example: allranks runs --status Failed --since 7d
    """
    begin = 0.0 if since is None else moment(since, "--since")
    workspace, most = Workspace.at(folder), None if page or open_ else limit
    unreadable: dict[str, str] = {}
    records = stored.runs(
        workspace,
        most,
        statuses=status or tuple(Status),
        since=begin,
        steps=json and most is not None,
        unreadable=unreadable.__setitem__,
    )
    if (page or open_) and (records or unreadable):
        from allranks.history.page.runs_page import write_runs_page  # takes 0.1 s to import

        file = write_runs_page(workspace, records, unreadable)
        opened = open_ and open_in_browser(file.as_uri())
        print_result(json, {"page": file, "opened": opened}, f"{'opened' if opened else 'written'}  {shown(file)}")
    elif json:
        print(to_json(records))
    elif not records and (status or since):
        console().print("No run meets these conditions. List all with: allranks runs")
    else:
        print_runs(console(), records, [name.strip() for name in columns.split(",") if name.strip()], unreadable)
    if unreadable:
        where = f"{workspace.database}, {'run' if len(unreadable) == 1 else 'runs'} {', '.join(unreadable)}"
        fix = "restore a copy of the file; the logs and outputs of the runs are in .allranks/runs"
        why, expected = next(iter(unreadable.values())), "a record that this version wrote"
        print_warnings([Problem(where, why, expected, fix, code="damaged-workspace")])
