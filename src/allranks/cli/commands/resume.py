"""`allranks resume`: resume a run that was interrupted, was stopped, or failed."""

from __future__ import annotations

from allranks.cli.execute import execute
from allranks.cli.options import (
    FolderOption,
    GpusOption,
    InstancesChoice,
    InstancesOption,
    JsonOption,
    RetriesOption,
    RunArgument,
    SlotsOption,
    TrackOption,
)


def resume(
    identity: RunArgument,
    instances: InstancesOption = InstancesChoice.AUTO,
    retries: RetriesOption = 0,
    slots: SlotsOption = None,
    gpus: GpusOption = "auto",
    track: TrackOption = True,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Resume a run that did not finish.

    The run was interrupted, was stopped, or failed. Completed steps do not run again.
    """
    from allranks.local.engine import resume as resume_run
    from allranks.local.options import Options
    from allranks.runs.workspace import Workspace

    options = Options(instances.value, False, retries, slots, gpus, track)
    execute(lambda observer: resume_run(identity, Workspace.at(workspace), options, observer), json)
