"""`allranks rerun`: run the pipeline of a run again."""

from __future__ import annotations

from typing import Annotated

import typer

from allranks.cli.execute import execute
from allranks.cli.option_groups import RunOptions
from allranks.cli.options import (
    FolderOption,
    FromOption,
    JsonOption,
    LatestCodeOption,
    OnlyOption,
    RunArgument,
    UntilOption,
)
from allranks.cli.params import ParamsOption, SetOption, settings_of


def rerun(
    identity: RunArgument,
    settings: SetOption = None,
    params: ParamsOption = None,
    latest_code: LatestCodeOption = False,
    start: FromOption = None,
    only: OnlyOption = None,
    until: UntilOption = None,
    force_rerun: Annotated[
        bool, typer.Option("--force-rerun", help="Run every step, even if an earlier result could be reused.")
    ] = False,
    *,
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
    from allranks.local.selection import Selection
    from allranks.runs.workspace import Workspace

    place = Workspace.at(workspace)
    options = execution.of(force_rerun=force_rerun, selection=Selection.of(start, only, until))
    values = settings_of(settings, params)
    execute(
        lambda observer: retry.rerun(identity, place, options, observer, latest_code=latest_code, inputs=values), json
    )
