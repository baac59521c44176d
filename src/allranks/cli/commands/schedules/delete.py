"""`allranks schedules delete`: delete a schedule of a workspace."""

from __future__ import annotations

from allranks.cli.option_groups import AzureOptions
from allranks.cli.options import JsonOption, ScheduleArgument


def delete(name: ScheduleArgument, *, azure: AzureOptions, json: JsonOption = False) -> None:
    """Delete a schedule of an Azure ML workspace.

    The runs that it started are not deleted.
    """
    from allranks.azure import schedules
    from allranks.azure.last_state import LastState, where_of
    from allranks.azure.workspace import sign_in
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json

    options = azure.of()
    client, _ = sign_in(options)
    applied = schedules.applied(client)
    schedules.delete(client, schedules.named(applied, name))
    others = {other: schedule for other, schedule in applied.items() if other != name}
    schedules.save(LastState.of(where_of(options)), others)
    if json:
        print(to_json({"name": name, "state": "deleted"}))
    else:
        console().print(f"{name}: deleted", soft_wrap=True)
