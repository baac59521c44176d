"""`allranks rerun`: run the pipeline of a run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allranks.cli.execute import execute
from allranks.cli.options import (
    FolderOption,
    ForceOption,
    InputOptions,
    JsonOption,
    LatestCodeOption,
    RunArgument,
    RunOptions,
    SampleOption,
    SelectionOptions,
)
from allranks.runs.workspace import Workspace

if TYPE_CHECKING:
    from allranks.runs.observer import Observer
    from allranks.runs.records import RunRecord


def rerun(
    identity: RunArgument,
    *,
    inputs: InputOptions,
    latest_code: LatestCodeOption = False,
    chosen: SelectionOptions,
    force_rerun: ForceOption = False,
    sample: SampleOption = "",
    execution: RunOptions,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run the pipeline of a run again, as a new run.

    It has the code and the inputs of that run, except for those that are set. The results that --from and --only reuse
    are those of that run.

    For example: allranks rerun latest --set epochs=20 --from train
    """
    from allranks.api import retry
    from allranks.cli.views.environments import Installations
    from allranks.cli.views.problems import print_warnings

    place = Workspace.at(workspace)
    options, values = execution.of(force_rerun=force_rerun, sample=sample, selection=chosen.of()), inputs.of()

    def run(observer: Observer) -> RunRecord:
        with Installations() as report:
            return retry.rerun(
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
