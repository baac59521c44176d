"""`allranks diff`: compare two runs."""

from __future__ import annotations

from typing import Annotated

from allranks import differences
from allranks.cli import completion
from allranks.cli.console import console, to_json
from allranks.cli.options import FolderOption, JsonOption, argument
from allranks.cli.views.runs import print_comparison
from allranks.workspace import Workspace


def diff(
    before: Annotated[str, argument("RUN_A", "A run as of `allranks show`.", autocompletion=completion.runs)],
    after: Annotated[str, argument("RUN_B", "The run to compare it with.", autocompletion=completion.runs)] = "latest",
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two runs: what their steps depend on, and their results.

    The first difference comes first: the package, file, input, variable or setting of the first step that differs.
    Runs that were submitted to Azure ML have no record of packages and data.
    """
    from allranks.azure.watch import finder  # of use for a run on Azure ML only

    find, place = finder(workspace), Workspace.at(workspace)
    found = differences.compare(*(differences.side(place, find(name)) for name in (before, after)))
    if json:
        print(to_json(found))
    else:
        print_comparison(console(), found)
