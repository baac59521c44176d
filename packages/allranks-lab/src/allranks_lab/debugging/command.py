"""`allranks debug`: debug ranks of a step."""

from typing import Annotated

from allranks.cli.console import print_warnings
from allranks.cli.execute import Installations, execute
from allranks.cli.options import EnvironmentOption, FileArgument, FolderOption, GpusOption, InstancesOption, SetOption
from allranks.cli.parameters import argument, option
from allranks.cli.values import settings_of
from allranks.history.observer import Observer
from allranks.history.records import RunRecord
from allranks.local.options import Options
from allranks.workspace import Workspace
from allranks_lab.debugging.debug import debug as run_debugged


def debug(
    file: FileArgument,
    step: Annotated[str, argument("STEP", "Path of the step, such as train. Default: the job's only one.")] = "",
    rank: Annotated[str, option("--rank", "The rank to debug, or all.", "N|all")] = "0",
    port: Annotated[
        int | None,
        option("--port", "Port of the debugger; that of the next rank follows. Default: free ones.", min=1, max=65535),
    ] = None,
    pdb: Annotated[bool, option("--pdb", "Use pdb in this terminal, instead of debugpy.")] = False,
    instances: InstancesOption = "auto",
    gpus: GpusOption = "auto",
    environment: EnvironmentOption = "host",
    *,
    settings: SetOption = None,
    folder: FolderOption = None,
) -> None:
    """Run a step, and what it needs, with a debugger in one of its ranks or all.

    The rank waits for VS Code, or another client of debugpy, before its script. Meanwhile no time-out ends the others.

    For example: allranks debug pipelines/image_classification.py train --rank 1
    """
    options = Options(instances, gpus=gpus, environment=environment, grace=2.0)

    def run(observer: Observer) -> RunRecord:
        with Installations() as report:
            return run_debugged(
                file,
                step,
                Workspace.at(folder),
                options,
                observer,
                inputs=settings_of(settings),
                rank=rank,
                port=port or 0,
                terminal=pdb,
                warn=print_warnings,
                report=report,
            )

    execute(run, False, plain=True)
