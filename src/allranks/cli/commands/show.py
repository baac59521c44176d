"""`allranks runs`, `show` and `diff`: list the runs of a workspace, show one, and compare two."""

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from allranks import differences
from allranks.azure.watch import finder
from allranks.cli.console import console, open_in_browser, print_result, to_json
from allranks.cli.options import (
    FolderOption,
    JsonOption,
    RunArgument,
    StepArgument,
    argument,
    complete_runs,
    complete_steps,
    option,
)
from allranks.cli.values import moment
from allranks.cli.views.runs import print_comparison, print_reuse, print_run, print_runs
from allranks.errors import InputError, Problem
from allranks.history import stored
from allranks.history.nested import records_at
from allranks.history.records import RunRecord, Status
from allranks.history.selection import EVERY_RUN, RunFilter
from allranks.workspace import Workspace


class RunStatus(str, Enum):
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
    statuses = frozenset(Status(each.value) for each in status or ())
    chosen = RunFilter(statuses, 0.0 if since is None else moment(since, "--since"))
    records = stored.runs(Workspace.at(folder), limit, steps=json, chosen=chosen)
    if json:
        print(to_json(records))
    elif not records and chosen != EVERY_RUN:
        console().print("No run meets these conditions. List all with: allranks runs")
    else:
        print_runs(console(), records)


def show(
    identity: RunArgument = "latest",
    step: StepArgument = None,
    open_: Annotated[
        bool, option("--open", "Open the page of the run in a browser; without one, print its path.")
    ] = False,
    why: Annotated[
        str | None, option("--why", "Say why this step was reused or not.", "STEP", autocompletion=complete_steps)
    ] = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Show a run: steps, metrics, outputs, and failures.

    For a run that was submitted to Azure ML, its current state is requested first.
    """
    record = finder(folder)(identity)
    if why is not None:
        found = differences.reuse(Workspace.at(folder), record, why)
        if json:
            print(to_json(found))
        else:
            print_reuse(console(), found, record.id)
    elif open_:
        _open_page(record, json)
    elif json:
        stored.load_usage(Workspace.at(folder), record)
        print(to_json(record if step is None else replace(record, steps=records_at(record, step))))
    else:
        print_run(console(), record, path=step)


def _open_page(record: RunRecord, json: bool) -> None:
    """Open the page of a run, or the studio for a run on Azure ML. Raise InputError if the run has no page yet."""
    page = record.page or (record.submitted.studio if record.submitted else "")
    is_address = "://" in page
    if not page or not (is_address or Path(page).is_file()):
        found = f"its page {page} is gone" if page and record.status.ended else "it has no page yet"
        raise InputError(Problem(f"run {record.id}", found, "", f"see: allranks show {record.id}"))
    opened = open_in_browser(page if is_address else Path(page).as_uri())
    value = {"run": record.id, "page": page, "opened": opened}
    print_result(json, value, f"opened  {page}" if opened else page)


def diff(
    before: Annotated[str, argument("RUN_A", "A run as of `allranks show`.", autocompletion=complete_runs)],
    after: Annotated[str, argument("RUN_B", "The run to compare it with.", autocompletion=complete_runs)] = "latest",
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two runs: what their steps depend on, and their results.

    The first difference comes first: the package, file, input, variable or setting of the first step that differs.
    Runs that were submitted to Azure ML have no record of packages and data.
    """
    find, workspace = finder(folder), Workspace.at(folder)
    found = differences.compare(*(differences.side(workspace, find(name)) for name in (before, after)))
    if json:
        print(to_json(found))
    else:
        print_comparison(console(), found)
