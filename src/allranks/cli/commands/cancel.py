"""`allranks cancel`: cancel a run that was submitted to Azure ML."""

from __future__ import annotations

from allranks.cli.options import FolderOption, RunArgument


def cancel(identity: RunArgument, workspace: FolderOption = None) -> None:
    """Cancel a run that was submitted to Azure ML.

    To stop a run on this machine, press Ctrl-C where it was started.
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
        raise InputError(
            Problem(where, "it runs on this machine", "a submitted run", "press Ctrl-C where it was started")
        )
    out = console()
    with connected(record) as client:
        if not record.status.ended:
            update(record, runs.state(client, record.id, steps=record.submitted.pipeline))
        if record.status.ended:
            raise InputError(Problem(where, f"it is {record.status}", "a run that has not ended"))
        runs.cancel(client, record.id)
    out.print(f"Azure ML is canceling {record.id}; see: allranks show {record.id}", soft_wrap=True)
