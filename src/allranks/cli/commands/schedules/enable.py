"""`allranks schedules enable`: enable a schedule of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allranks.cli.option_groups import AzureOptions
from allranks.cli.options import JsonOption, ScheduleArgument

if TYPE_CHECKING:
    from allranks.azure.workspace import WorkspaceOptions


def enable(name: ScheduleArgument, *, azure: AzureOptions, json: JsonOption = False) -> None:
    """Enable a schedule of an Azure ML workspace."""
    switch(name, azure.of(), json, on=True)


def switch(name: str, where: WorkspaceOptions, json: bool, *, on: bool) -> None:
    """Enable or disable a schedule of a workspace, and print its state."""
    from dataclasses import replace

    from allranks.azure import schedules
    from allranks.azure.last_state import LastState, where_of
    from allranks.azure.workspace import sign_in
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json

    client, _ = sign_in(where)
    applied = schedules.applied(client)
    changed = schedules.switch(client, applied, name, on=on)
    schedules.save(LastState.of(where_of(where)), {**applied, name: replace(applied[name], enabled=on)})
    state = "enabled" if on else "disabled"
    if json:
        print(to_json({"name": name, "state": state, "changed": changed}))
    else:
        console().print(f"{name}: {state}" + ("" if changed else " already"), soft_wrap=True)
