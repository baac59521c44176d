"""`allranks replay`: run one step of a past run again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from allranks.cli import completion
from allranks.cli.console import console, errors
from allranks.cli.execute import Installations
from allranks.cli.options import AzureOptions, FolderOption, LatestCodeOption, argument


def replay(
    identity: Annotated[
        str, argument("RUN[/STEP]", "A run as of `allranks show`, or azure:JOB.", autocompletion=completion.runs)
    ],
    step: Annotated[
        str, argument("STEP", "Path of a step, such as train or loop[2].train.", autocompletion=completion.steps)
    ] = "",
    *,
    latest_code: LatestCodeOption = False,
    azure: AzureOptions,
    folder: FolderOption = None,
) -> None:
    """Run one step of a past run again, with its recorded inputs; it is recorded nowhere.

    It has the inputs, variables, layout and code of that run. Its logs are printed, and a step that failed fails again.
    The exit code is that of the rank that fails first.

    The run may be any job on Azure ML, such as azure:JOB/train. The code and data of the step are then downloaded, and
    the outputs of the steps before it.

    For example: allranks replay latest train
    """
    from rich.text import Text

    from allranks.api.replay import plan_of, temporary_folder
    from allranks.cli.views.problems import print_warnings
    from allranks.cli.views.progress import PlainLines
    from allranks.cli.views.summary import explained
    from allranks.local import engine
    from allranks.runs.log_reader import print_logs
    from allranks.runs.records import RunRecord, Status
    from allranks.runs.workspace import Workspace

    class Lines(PlainLines):
        def ended(self, run: RunRecord) -> None:
            """Print nothing: what follows of a run that is recorded does not follow here."""

    with temporary_folder() as temporary:
        with Installations() as report:
            plan, options = plan_of(
                identity,
                step,
                Workspace.at(folder),
                Path(temporary),
                latest_code=latest_code,
                azure=azure.of(),
                warn=print_warnings,
                report=report,
            )
        record = engine.run(plan, Workspace(Path(temporary)), options, Lines(errors()))
        sys.stdout.flush()
        print_logs(lambda _: record, record.id, None, None)
        (verdict,) = (each.verdict for each in record.steps)
        if verdict is not None:
            console().print(Text("\n").join(explained(verdict)[:-1]), soft_wrap=True)
    if record.status is Status.FAILED:
        sys.exit((verdict and verdict.exit_code) or 1)
    if record.status is not Status.COMPLETED:
        sys.exit(130)
