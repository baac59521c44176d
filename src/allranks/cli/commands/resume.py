"""`allranks resume`: resume a run that was interrupted, was stopped, or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allranks.cli.execute import execute
from allranks.cli.options import FolderOption, InputOptions, JsonOption, LatestCodeOption, RunArgument, RunOptions
from allranks.runs.workspace import Workspace

if TYPE_CHECKING:
    from allranks.runs.observer import Observer
    from allranks.runs.records import RunRecord


def resume(
    identity: RunArgument,
    *,
    latest_code: LatestCodeOption = False,
    inputs: InputOptions,
    execution: RunOptions,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Resume a run that did not finish.

    The run was interrupted, was stopped, or failed. Completed steps do not run again. The run continues with the code
    and the inputs that it started with. With --latest-code, the pipeline's file is read again, also with other inputs;
    completed steps whose code and inputs have not changed keep their results.
    """
    from allranks.api import retry
    from allranks.cli.views.environments import Installations
    from allranks.cli.views.problems import print_warnings

    place = Workspace.at(workspace)
    options, values = execution.of(), inputs.of()

    def run(observer: Observer) -> RunRecord:
        with Installations() as report:
            return retry.resume(
                identity,
                place,
                options,
                observer,
                latest_code=latest_code,
                inputs=values,
                warn=print_warnings,
                report=report,
            )

    execute(run, json, verbose=execution.verbose)
