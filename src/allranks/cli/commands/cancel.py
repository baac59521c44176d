"""`allranks cancel`: end a run that was submitted to Azure ML."""

from __future__ import annotations

from allranks.cli.options import FolderOption, RunArgument


def cancel(identity: RunArgument, workspace: FolderOption = None) -> None:
    """Ask Azure ML to end a run that was submitted.

    A run on this machine is ended by Ctrl-C where it was started.
    """
    from allranks.azure import runs
    from allranks.azure.run_records import update
    from allranks.azure.watch import connected
    from allranks.cli.console import console
    from allranks.errors import InputError, Problem
    from allranks.runs import history
    from allranks.runs.workspace import Workspace

    record = history.run(Workspace.at(workspace), identity)
    where = f"run {record.id}"
    if record.submitted is None:
        raise InputError(Problem(where, "it is on this machine", "a submitted run", "Ctrl-C where it was started"))
    out = console()
    with connected(record) as client:
        if not record.status.ended:
            update(record, runs.state(client, record.id, steps=record.submitted.pipeline))
        if record.status.ended:
            raise InputError(Problem(where, f"it is {record.status}", "a run that is not over"))
        runs.cancel(client, record.id)
    out.print(f"Azure ML ends {record.id}; see: allranks show {record.id}", soft_wrap=True)
