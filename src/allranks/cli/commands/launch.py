"""`allranks launch`: run a script of one's own as Azure ML would."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.execute import execute_job
from allranks.cli.options import (
    ColdOption,
    FolderOption,
    GpusOption,
    InstancesChoice,
    InstancesOption,
    JsonOption,
    MpiChoice,
    MpiOption,
    RetriesOption,
    SlotsOption,
    StartTimeoutOption,
    TrackOption,
)
from allranks.cli.params import settings_of

if TYPE_CHECKING:
    from allranks.runs.workspace import Workspace
    from allranks.script_jobs.job import ScriptJob

SETTINGS = {"allow_interspersed_args": False}
"""What follows the script is for the script."""


def launch(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [ARGUMENT]...",
            help="The script and its own arguments, also if they look like options of this command. A launcher may be "
            "in front: torchrun, accelerate launch, deepspeed, mpirun.",
            show_default=False,
        ),
    ] = None,
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            "-j",
            metavar="NxM",
            help="N instances with M processes each. Default: as the launcher says, or 1 instance with a process for "
            "each GPU of the size.",
            show_default=False,
        ),
    ] = "",
    distribution: Annotated[
        str,
        typer.Option(
            "--distribution",
            metavar="pytorch|mpi|torchrun|accelerate|deepspeed|tensorflow|ray",
            help="How the processes start. Default: pytorch, or as the launcher says.",
            show_default=False,
        ),
    ] = "",
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=PATH",
            help="Folder or file of data. The script gets its path for {NAME} in its arguments, else as --NAME PATH, "
            "unless it reads AZURE_ML_INPUT_NAME. May be repeated.",
            show_default=False,
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="NAME",
            help="Folder that the script writes. The script gets its path as for --input. May be repeated.",
            show_default=False,
        ),
    ] = None,
    variables: Annotated[
        list[str] | None,
        typer.Option(
            "--env", metavar="NAME=VALUE", help="Set an environment variable. May be repeated.", show_default=False
        ),
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option(
            "--code",
            metavar="DIR",
            help="Folder that the ranks get, with the script in it. Default: the script's folder.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        str, typer.Option("--size", metavar="SIZE", help="Azure size, such as ND96asr_v4.", show_default=False)
    ] = "",
    environment: Annotated[
        str,
        typer.Option(
            "--environment",
            metavar="azureml:...|FILE|NAME",
            help="Registered environment, an environment's YAML file, or the name of one that comes with allranks. "
            "Default: the one that fits the distribution.",
            show_default=False,
        ),
    ] = "",
    emit: Annotated[
        Path | None,
        typer.Option(
            "--emit",
            metavar="FILE",
            help="Write the job for Azure ML, and run nothing: as a job (.yml), or as a pipeline in Python (.py).",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the plan, each rank's environment, and the copied files, without starting anything.",
        ),
    ] = False,
    instances: InstancesOption = InstancesChoice.AUTO,
    retries: RetriesOption = 0,
    slots: SlotsOption = None,
    gpus: GpusOption = "auto",
    track: TrackOption = True,
    cold: ColdOption = False,
    mpi: MpiOption = MpiChoice.RSH,
    start_timeout: StartTimeoutOption = 20.0,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Run a script on this machine as Azure ML would.

    For example: allranks launch -j 2x4 train.py --epochs 3

    A command with a launcher can be pasted: allranks launch -- torchrun --nnodes 2 --nproc-per-node 4 train.py
    """
    from allranks.local.options import Options
    from allranks.runs.workspace import Workspace

    words = command or []
    place = Workspace.at(workspace)

    def job() -> ScriptJob:
        from allranks.script_jobs.job import script_job

        made = script_job(
            words,
            layout=layout,
            distribution=distribution,
            inputs=settings_of(inputs, option="--input", example="data=my/folder"),
            outputs=outputs or [],
            variables=settings_of(variables, option="--env", example="NCCL_DEBUG=INFO"),
            code=code,
            size=size,
            environment=environment,
        )
        _print_dropped(made)
        return made

    if emit is not None:
        _emit(job(), emit, json)
        return
    if dry_run:
        _print_dry_run(job(), place, instances.value, mpi.value, json)
        return
    options = Options(
        instances.value,
        retries=retries,
        slots=slots,
        gpus=gpus,
        track=track,
        cold=cold,
        mpi=mpi.value,
        start_timeout=start_timeout,
    )
    script = next((word for word in words if word.endswith(".py")), " ".join(words))
    execute_job(job, script, place, options, json)


def _print_dropped(job: ScriptJob) -> None:
    """Print which options of a pasted launcher Azure ML decides."""
    from allranks.cli.console import errors

    if job.dropped:
        errors().print(f"left out, because Azure ML decides it: {', '.join(job.dropped)}", soft_wrap=True, markup=False)


def _emit(job: ScriptJob, file: Path, json: bool) -> None:
    import shlex

    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.script_jobs.emit import emit

    written = emit(job, file)
    if json:
        print(to_json({"folder": str(file.parent), "written": written}))
        return
    name, out = shlex.quote(str(file)), console()
    out.print(f"{file}: written", soft_wrap=True, markup=False)
    if copies := [each for each in written if each != file.name]:
        folder = file.parent.joinpath(*Path(copies[0]).parts[:2])
        out.print(f"{folder}: copied from allranks, which the file refers to", soft_wrap=True, markup=False)
    if file.suffix != ".py":
        out.print(f"  az ml job create --file {name}", soft_wrap=True, markup=False)
    out.print(f"  allranks submit {name}\n  allranks run {name}", soft_wrap=True, markup=False)


def _print_dry_run(job: ScriptJob, workspace: Workspace, instances: str, mpi: str, json: bool) -> None:
    import tempfile

    from allranks.cli.views.dry_run import print_dry_run
    from allranks.script_jobs.plan import plan_of, uploads_of

    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        plan = plan_of(job, Path(snapshots), workspace)
        print_dry_run(plan, lambda: uploads_of(job), workspace, instances, mpi, json=json)
