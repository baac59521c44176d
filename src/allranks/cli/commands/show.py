"""`allranks show`: show a run."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from allranks import differences
from allranks.azure.watch import finder
from allranks.cli.completion import complete_steps
from allranks.cli.console import console, open_in_browser, print_result, to_json
from allranks.cli.options import FolderOption, JsonOption, RunArgument, StepArgument
from allranks.cli.parameters import option
from allranks.cli.views.runs import print_reuse, print_run
from allranks.errors import InputError, Problem
from allranks.history import stored
from allranks.history.nested import records_at
from allranks.history.records import RunRecord
from allranks.workspace import Workspace


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
