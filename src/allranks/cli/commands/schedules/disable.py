"""`allranks schedules disable`: disable a schedule of a workspace."""

from __future__ import annotations

from allranks.cli.commands.schedules.enable import switch
from allranks.cli.options import (
    AzureWorkspaceOption,
    ConfigOption,
    JsonOption,
    ResourceGroupOption,
    ScheduleArgument,
    SubscriptionOption,
    workspace_options,
)


def disable(
    name: ScheduleArgument,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Disable a schedule of an Azure ML workspace."""
    switch(name, workspace_options(subscription, resource_group, workspace, config=config), json, on=False)
