"""`allranks resume` and `allranks rerun`: continue a run, or run its pipeline again."""

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


def resume(
    identity: RunArgument,
    *,
    latest_code: LatestCodeOption = False,
    settings: SetOption = None,
    execution: RunOptions,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Resume a run that did not finish.

    The run was interrupted, was stopped, or failed. Completed steps do not run again. The run continues with the code
    and the inputs that it started with. With --latest-code, the pipeline's file is read again, also with other inputs;
    completed steps whose code and inputs have not changed keep their results.
    """
    workspace, given = Workspace.at(folder), {"latest_code": latest_code, "inputs": settings_of(settings)}
    execute_again(retry.resume, identity, workspace, execution.options(), json, verbose=execution.verbose, **given)


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
