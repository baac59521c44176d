"""`allranks schedules disable`: disable a schedule of a workspace."""

from __future__ import annotations

from allranks.cli.commands.schedules.enable import switch
from allranks.cli.option_groups import AzureOptions
from allranks.cli.options import JsonOption, ScheduleArgument


def disable(name: ScheduleArgument, *, azure: AzureOptions, json: JsonOption = False) -> None:
    """Disable a schedule of an Azure ML workspace."""
    switch(name, azure.of(), json, on=False)
