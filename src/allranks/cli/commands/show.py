"""`allranks show`: show one run."""

from __future__ import annotations

from allranks.cli.options import FolderOption, JsonOption, RunArgument


def show(identity: RunArgument = "latest", workspace: FolderOption = None, json: JsonOption = False) -> None:
    """Show a run: its steps, metrics, outputs, and what failed.

    Of a run that was submitted to Azure ML, how it is now.
    """
    from allranks.azure.watch import finder
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.cli.views.tables import print_run

    record = finder(workspace)(identity)
    if json:
        print(to_json(record))
    else:
        print_run(console(), record)
