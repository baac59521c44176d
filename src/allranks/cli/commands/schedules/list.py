"""`allranks schedules list`: list the declared schedules and those of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from allranks.cli.option_groups import AzureOptions
from allranks.cli.options import JsonOption, SchedulesArgument

if TYPE_CHECKING:
    from rich.console import Console

    from allranks.schedules.triggers import Trigger


def list_(
    target: SchedulesArgument = None,
    local: Annotated[
        bool, typer.Option("--local", help="List declared schedules only, without contacting Azure.")
    ] = False,
    *,
    azure: AzureOptions,
    json: JsonOption = False,
) -> None:
    """List the declared schedules and those of a workspace."""
    from datetime import datetime, timezone

    from allranks.azure import schedules
    from allranks.azure.last_state import LastState, where_of
    from allranks.azure.workspace import sign_in
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.schedules.finding import find_schedules
    from allranks.schedules.firings import firings
    from allranks.sdk.session import session

    now = datetime.now(timezone.utc)
    applied: dict[str, schedules.Applied] = {}
    if not local:
        options = azure.of()
        applied = schedules.refresh_schedules(sign_in(options)[0], LastState.of(where_of(options)))
    with session(client=False):
        declared = {declaration.schedule.name: declaration.schedule for declaration in find_schedules(target)}
    rows: list[dict[str, Any]] = []
    for name in sorted({*declared, *applied}):
        own, remote = declared.get(name), applied.get(name)
        trigger = own.trigger if own else remote.trigger if remote else None
        following = next(firings(trigger, now, now), None) if trigger else None
        if remote is None:
            state = "declared" if local else "not applied"
        else:
            state = "enabled" if remote.enabled else "disabled"
        row = {
            "name": name,
            "declared_in": own.where if own else None,
            "state": state,
            "differs": bool(own and remote and schedules.trigger_differs(own.trigger, remote.trigger)),
            "trigger": _described(trigger),
            "time_zone": trigger.time_zone if trigger else None,
            "next": following.isoformat() if following and state != "disabled" else None,
        }
        rows.append(row)
    if json:
        print(to_json(rows))
    else:
        _print_rows(console(), rows)


def _described(trigger: Trigger | None) -> str | None:
    from allranks.schedules.triggers import in_words

    return in_words(trigger) if trigger else None


def _print_rows(out: Console, rows: list[dict[str, Any]]) -> None:
    from datetime import datetime, timezone

    from allranks.cli.views.schedules import moment
    from allranks.runs.formatting import plain

    for row in rows:
        state = row["state"] + (", applied with another trigger" if row["differs"] else "")
        out.print(plain(f"{row['name']}  {state}"), soft_wrap=True)
        out.print(plain(f"  {row['declared_in'] or 'not declared here'}"), soft_wrap=True)
        if row["trigger"]:
            out.print(plain(f"  {row['trigger']}, {row['time_zone']}"), soft_wrap=True)
        if row["next"]:
            at = datetime.fromisoformat(row["next"])
            utc = f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"
            out.print(f"  next: {moment(at, row['time_zone'])}, {utc}", soft_wrap=True)
