"""`allranks rerun`: run the pipeline of a run again."""

from allranks.api.retry import Retry
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
    options = execution.options(force_rerun=force_rerun, sample=sample, selection=chosen.selection())
    again = Retry(identity, Workspace.at(folder), options, latest_code, settings_of(settings))
    execute_again(again, Retry.rerun, json, verbose=execution.verbose)
