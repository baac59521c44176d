"""`allranks rerun`: run the pipeline of a run again."""

from allranks.api import retry
from allranks.cli.execute import execute_again
from allranks.cli.options import (
    FolderOption,
    ForceOption,
    JsonOption,
    LatestCodeOption,
    RunArgument,
    RunOptions,
    SampleOption,
    SelectionOptions,
    SetOption,
)
from allranks.cli.values import settings_of
from allranks.workspace import Workspace


def rerun(
    identity: RunArgument,
    *,
    settings: SetOption = None,
    latest_code: LatestCodeOption = False,
    chosen: SelectionOptions,
    force_rerun: ForceOption = False,
    sample: SampleOption = "",
    execution: RunOptions,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run the pipeline of a run again, as a new run.

    It has the code and the inputs of that run, except for those that are set. The results that --from and --only reuse
    are those of that run.

    For example: allranks rerun latest --set epochs=20 --from train
    """
    workspace, given = Workspace.at(folder), {"latest_code": latest_code, "inputs": settings_of(settings)}
    options = execution.options(force_rerun=force_rerun, sample=sample, selection=chosen.selection())
    execute_again(retry.rerun, identity, workspace, options, json, verbose=execution.verbose, **given)
