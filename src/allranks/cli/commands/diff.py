"""`allranks diff`: compare two runs."""

from typing import Annotated

from allranks import differences
from allranks.azure.watch import finder
from allranks.cli.completion import complete_runs
from allranks.cli.console import console, to_json
from allranks.cli.options import FolderOption, JsonOption, argument
from allranks.cli.views.runs import print_comparison
from allranks.workspace import Workspace

_RUN = "A run as of `allranks show`."
_OTHER = "The run to compare it with. With a single run, that is compared with the one before it of the same pipeline."


def diff(
    before: Annotated[str, argument("RUN", _RUN, autocompletion=complete_runs)] = "latest",
    after: Annotated[str, argument("OTHER", _OTHER, autocompletion=complete_runs)] = "",
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two runs: what their steps depend on, and their results.

    The first difference comes first: the package, file, input, variable or setting of the first step that differs.
    Metrics are compared by their final and best values. Runs that were submitted to Azure ML have no record of packages
    and data.

    For example: allranks diff
    """
    find, workspace = finder(folder), Workspace.at(folder)
    first = find(before)
    pair = (first, find(after)) if after else (find(differences.previous(workspace, first)), first)
    found = differences.compare(*(differences.side(workspace, run) for run in pair))
    if json:
        print(to_json(found))
    else:
        print_comparison(console(), found)
