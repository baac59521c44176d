"""`allranks diff`: compare two runs."""

from typing import Annotated

from allranks import differences
from allranks.azure.watch import finder
from allranks.cli.completion import complete_runs
from allranks.cli.console import console, to_json
from allranks.cli.options import FolderOption, JsonOption, argument
from allranks.cli.views.runs import print_comparison
from allranks.workspace import Workspace


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
