"""`allranks show`: show one run."""

from __future__ import annotations

from allranks.cli.options import FolderOption, JsonOption, RunArgument, StepArgument


def show(
    identity: RunArgument = "latest",
    step: StepArgument = None,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Show a run: steps, metrics, outputs, and failures.

    For a run that was submitted to Azure ML, its current state is requested first.
    """
    from dataclasses import replace

    from allranks.azure.watch import finder
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.cli.views.tables import print_run
    from allranks.runs.nested import records_at

    record = finder(workspace)(identity)
    if json:
        print(to_json(record if step is None else replace(record, steps=records_at(record, step))))
    else:
        print_run(console(), record, path=step)
