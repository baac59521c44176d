"""`allranks diff`: compare two runs, or two pipeline files."""

import tempfile
from pathlib import Path
from typing import Annotated

from allranks import differences
from allranks.api.pipeline_sides import side_of_file
from allranks.azure.watch import finder
from allranks.cli.completion import complete_runs
from allranks.cli.console import console, to_json
from allranks.cli.options import FolderOption, JsonOption
from allranks.cli.parameters import argument
from allranks.cli.views.runs import print_comparison
from allranks.workspace import Workspace

_RUN = "A run as of `allranks show`, or a pipeline's file or folder."
_OTHER = "What to compare it with. A single run is compared with the one before it of the same pipeline."


def diff(
    before: Annotated[str, argument("RUN", _RUN, autocompletion=complete_runs)] = "latest",
    after: Annotated[str, argument("OTHER", _OTHER, autocompletion=complete_runs)] = "",
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Compare two runs, or two pipeline files: what their steps depend on, and the results of runs.

    The first difference comes first: the package, file, input, variable or setting of the first step that differs.
    Metrics are compared by their final and best values. Runs that were submitted to Azure ML have no record of packages
    and data. Two files or folders, such as those of `allranks pull`, are compared as graphs.

    For example: allranks diff
    """
    find, workspace = finder(folder), Workspace.at(folder)
    if after and all(Path(each).exists() for each in (before, after)):
        with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
            sides = [side_of_file(each, Path(snapshots), workspace) for each in (before, after)]
            found = differences.compare(*sides)
    else:
        first = find(before)
        pair = (first, find(after)) if after else (find(differences.previous(workspace, first)), first)
        found = differences.compare(*(differences.side(workspace, run) for run in pair))
    if json:
        print(to_json(found))
    else:
        print_comparison(console(), found)
