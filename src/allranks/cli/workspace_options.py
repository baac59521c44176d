"""Options by which commands that work in Azure are told where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from allranks.azure.workspace import WorkspaceOptions

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
