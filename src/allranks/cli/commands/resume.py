"""`allranks resume`: continue a run that did not finish."""

from allranks.api.retry import Retry
from allranks.cli.execute import execute_again
from allranks.cli.options import FolderOption, JsonOption, LatestCodeOption, RunArgument, RunOptions, SetOption
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
    again = Retry(identity, Workspace.at(folder), execution.options(), latest_code, settings_of(settings))
    execute_again(again, Retry.resume, json, verbose=execution.verbose)
