"""Options that several commands share."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from allranks.cli import completion

FolderOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Folder for runs and results. Default: .allranks in this folder or a parent.",
        show_default=False,
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's id, the first characters of it, the name of its job or pipeline, or: latest.",
        autocompletion=completion.runs,
    ),
]
StepArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="STEP",
        help="Path of a step or a group of steps, such as train or loop.2.train. Default: every step.",
        show_default=False,
        autocompletion=completion.steps,
    ),
]
FileArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE[:NAME]",
        help="Python file, notebook, or YAML with a pipeline or job. NAME: a job's variable or a pipeline function.",
        show_default=False,
        autocompletion=completion.pipeline_files,
    ),
]


LayoutOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--layout",
        "-j",
        metavar="NxM",
        help="For a component alone: N instances with M processes each. Default: as its spec says.",
        show_default=False,
    ),
]


class InstancesChoice(str, Enum):
    """The kind of emulated instances."""

    AUTO = "auto"
    RACK = "rack"
    LOOPBACK = "loopback"


class MpiChoice(str, Enum):
    """How mpirun reaches the instances."""

    RSH = "rsh"
    SSH = "ssh"


InstancesOption: TypeAlias = Annotated[
    InstancesChoice,
    typer.Option(
        "--instances",
        help="rack: Linux namespaces; each instance has its own network, hostname and /tmp. "
        "loopback: addresses on 127.0.0.0/8. auto: rack if this machine supports it.",
    ),
]
DryRunOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Print the plan, each rank's environment, and the copied files, without starting anything.",
    ),
]
RetriesOption: TypeAlias = Annotated[
    int, typer.Option("--retries", min=0, help="How many times a failed step is retried.")
]
SlotsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--slots",
        min=1,
        help="How many ranks may run at once; a larger step runs alone. Default: the number of cores.",
        show_default=False,
    ),
]
GpusOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--gpus",
        metavar="auto|share|N",
        help="auto: one GPU per rank. share: ranks share the GPUs. N: use N GPUs; 0 trains on the CPU.",
        callback=lambda value: _gpus(value),
    ),
]
TrackOption: TypeAlias = Annotated[
    bool, typer.Option("--track/--no-track", help="Create an MLflow run for each step that runs Python.")
]
ColdOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--cold", help="Start every rank as a new process, instead of forking it from one with the imported packages."
    ),
]
MpiOption: TypeAlias = Annotated[
    MpiChoice,
    typer.Option(
        "--mpi",
        help="How mpirun starts ranks on other instances. rsh: through the engine. ssh: through an sshd on each "
        "instance, with the configuration of the images; needs the distribution's Open MPI and OpenSSH.",
    ),
]
StartTimeoutOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--start-timeout",
        metavar="SECONDS",
        min=0.1,
        help="How long an emulated instance may take to start its processes. The step then fails and names it.",
    ),
]
FromOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="STEP",
        help="Run this step and everything after it, even if results could be reused; reuse what it needs. May be "
        "repeated.",
        show_default=False,
    ),
]
OnlyOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--only", metavar="STEP", help="Run only this step; reuse what it needs. May be repeated.", show_default=False
    ),
]
UntilOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--until",
        metavar="STEP",
        help="Run only this step and what it needs. May be repeated.",
        show_default=False,
    ),
]
LatestCodeOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--latest-code",
        help="Read the pipeline's file again, instead of running the code that the run started with.",
    ),
]
SchedulesArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE|FOLDER",
        help="File or folder with schedules. Default: pipelines/ in this folder or a parent.",
        show_default=False,
    ),
]
ScheduleArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
ComponentsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--components",
        metavar="DIR",
        help="Folder with components. Default: components/ in this folder or a parent.",
        show_default=False,
    ),
]
LibraryOption: TypeAlias = Annotated[
    bool, typer.Option("--library", help="The components that come with allranks, instead of a project's.")
]
EnvironmentsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        help="Folder with environments. Default: environments/ in this folder or a parent.",
        show_default=False,
    ),
]
EnvironmentNamesArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Names of environments. Default: all.",
        show_default=False,
        autocompletion=completion.environments,
    ),
]
AssetNamesArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Names of components or environments. Default: all.",
        show_default=False,
        autocompletion=completion.components,
    ),
]
EngineOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="buildah|podman|docker",
        help="Program that builds images. Default: the first that is installed.",
        show_default=False,
    ),
]
SubscriptionOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--subscription",
        metavar="ID",
        help="Azure subscription. Default: AZUREML_ARM_SUBSCRIPTION.",
        show_default=False,
    ),
]
ResourceGroupOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--resource-group",
        "-g",
        metavar="NAME",
        help="Azure resource group. Default: AZUREML_ARM_RESOURCEGROUP.",
        show_default=False,
    ),
]
AzureWorkspaceOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--workspace",
        "--workspace-name",
        "-w",
        metavar="NAME",
        help="Azure ML workspace. Default: AZUREML_ARM_WORKSPACE_NAME, then config.json.",
        show_default=False,
    ),
]
RegistryOption: TypeAlias = Annotated[
    str,
    typer.Option("--registry", metavar="NAME", help="Azure ML registry, instead of a workspace.", show_default=False),
]
OfflineOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--offline",
        help="With --dry-run: compare with the last known state, without contacting Azure. That is also done if Azure "
        "cannot be reached.",
    ),
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="PATH",
        help="A workspace's config.json. Default: the one in .azureml/ in this folder or a parent.",
        show_default=False,
    ),
]


def _gpus(value: str) -> str:
    if value not in ("auto", "share") and not value.isdecimal():
        raise typer.BadParameter(f"found {value!r}, expected auto, share, or a number such as 0")
    return value


def components_of(folder: Path | None, library: bool) -> Path | None:
    """Return the folder of the library's components, or the one that is given. Raise InputError if both are asked
    for."""
    from allranks.components.shipped import shipped_folder
    from allranks.errors import InputError, Problem

    if library and folder:
        raise InputError(Problem("--library", f"the folder {folder} is given too", "one of them", "leave out one"))
    return shipped_folder() / "components" if library else folder


def require_dry_run(offline: bool, dry_run: bool) -> None:
    """Raise InputError if --offline is given without --dry-run."""
    from allranks.errors import InputError, Problem

    if offline and not dry_run:
        raise InputError(Problem("--offline", "it is given without --dry-run", "both", "add --dry-run"))
