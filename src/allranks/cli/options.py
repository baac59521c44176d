"""Options that several commands share."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from allranks.azure.workspace import WorkspaceOptions

FolderOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Folder for runs and results; by default .allranks here or in a folder above.",
        show_default=False,
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of text for people.")]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Give an input of the pipeline a value. May be repeated.",
        show_default=False,
    ),
]
RunArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, the beginning of it, or: latest.")
]
StepArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="STEP",
        help="A step or a group of steps by its path, such as train or loop.2.train; without it, every step.",
        show_default=False,
    ),
]
FileArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="FILE[:NAME]",
        help="A Python file or notebook with a job or a pipeline function, or a job or pipeline in YAML.",
        show_default=False,
    ),
]


class InstancesChoice(str, Enum):
    """Where emulated instances live."""

    AUTO = "auto"
    RACK = "rack"
    LOOPBACK = "loopback"


InstancesOption: TypeAlias = Annotated[
    InstancesChoice,
    typer.Option(
        "--instances",
        help="rack: namespaces, each instance with its own network, hostname and /tmp. "
        "loopback: addresses on 127.0.0.0/8. auto: the rack where it works.",
    ),
]
RetriesOption: TypeAlias = Annotated[
    int, typer.Option("--retries", min=0, help="How often a failed step is tried again.")
]
SlotsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--slots",
        min=1,
        help="How many ranks may run at once; a step of more runs alone. Default: the number of cores.",
        show_default=False,
    ),
]
GpusOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--gpus",
        metavar="auto|share|N",
        help="auto: a GPU for each rank. share: ranks share the GPUs. N: use so many; 0 trains on the CPU.",
        callback=lambda value: _gpus(value),
    ),
]
TrackOption: TypeAlias = Annotated[
    bool, typer.Option("--track/--no-track", help="Give each step that runs Python an MLflow run.")
]
SchedulesArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE|FOLDER",
        help="What declares the schedules; by default the folder pipelines here or in a folder above.",
        show_default=False,
    ),
]
ScheduleArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]
ComponentsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--components", metavar="DIR", help="By default components/ here or in a folder above.", show_default=False
    ),
]
EnvironmentsOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--folder", help="Where to look; by default environments/ here or in a folder above.", show_default=False
    ),
]
EnvironmentNamesArgument: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", help="Environments; all by default.", show_default=False)
]
EngineOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="buildah|podman|docker", help="By default the first that is here.", show_default=False
    ),
]
SubscriptionOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--subscription", metavar="ID", help="Azure subscription; else AZUREML_ARM_SUBSCRIPTION.", show_default=False
    ),
]
ResourceGroupOption: TypeAlias = Annotated[
    str,
    typer.Option("--resource-group", "-g", metavar="NAME", help="Else AZUREML_ARM_RESOURCEGROUP.", show_default=False),
]
AzureWorkspaceOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--workspace",
        "--workspace-name",
        "-w",
        metavar="NAME",
        help="Azure ML workspace; else AZUREML_ARM_WORKSPACE_NAME, else config.json.",
        show_default=False,
    ),
]
RegistryOption: TypeAlias = Annotated[
    str, typer.Option("--registry", metavar="NAME", help="An Azure ML registry instead.", show_default=False)
]
ConfigOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="PATH",
        help="A workspace's config.json; by default the one in .azureml/ here or in a folder above.",
        show_default=False,
    ),
]


def _gpus(value: str) -> str:
    if value not in ("auto", "share") and not value.isdecimal():
        raise typer.BadParameter(f"found {value!r}, expected auto, share, or a number such as 0")
    return value


def settings_of(pairs: list[str] | None) -> dict[str, str]:
    """What --set was given, by name. Raises InputError for one without "=", or given twice."""
    from allranks.errors import InputError, Problem

    settings: dict[str, str] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(
                Problem(f"--set {pair}", "has no name and value", "NAME=VALUE", "for example: --set epochs=5")
            )
        if name in settings:
            raise InputError(Problem(f"--set {pair}", f"{name} is set twice", "", "keep one of them"))
        settings[name] = value
    return settings


def workspace_options(
    subscription: str = "",
    resource_group: str = "",
    workspace: str = "",
    registry: str = "",
    config: Path | None = None,
) -> WorkspaceOptions:
    """What the options above say. Raises InputError where both a workspace and a registry are named."""
    from allranks.azure.workspace import WorkspaceOptions
    from allranks.errors import InputError, Problem

    if registry and workspace:
        found = f"a workspace, {workspace}, is named too"
        raise InputError(Problem(f"--registry {registry}", found, "one of them", "leave one out"))
    return WorkspaceOptions(subscription, resource_group, workspace, registry, config)
