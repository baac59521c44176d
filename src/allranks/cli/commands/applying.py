"""`allranks schedules apply` and what looks at, switches and deletes that: schedules on Azure ML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from allranks.cli.options import JsonOption, SchedulesArgument
from allranks.cli.workspace_options import (
    AzureWorkspaceOption,
    ConfigOption,
    ResourceGroupOption,
    SubscriptionOption,
    workspace_options,
)

if TYPE_CHECKING:
    from rich.console import Console

    from allranks.azure.schedules import Change
    from allranks.azure.workspace import WorkspaceName
    from allranks.schedules.triggers import Trigger


NameArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The schedule's name.")]


def apply(
    target: SchedulesArgument = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change; change nothing.")] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Delete those that were applied from these files and are not declared any more."),
    ] = False,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Make a workspace's schedules what is declared.

    What is there already is left alone, and one that was disabled stays so.
    """
    from datetime import datetime, timezone

    from allranks.azure import schedules
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console

    client, name = _connected(subscription, resource_group, workspace, config)
    there = schedules.applied(client)
    wanted = schedules.changes(target, name, there, datetime.now(timezone.utc), prune=prune)
    out = console()

    def done(change: Change) -> None:
        if not json:
            _print_change(out, change, dry_run)

    if dry_run:
        for change in wanted:
            done(change)
    else:
        schedules.apply(client, target, there, wanted, done)
    if json:
        print(to_json(wanted))


def list_schedules(
    target: SchedulesArgument = None,
    local: Annotated[bool, typer.Option("--local", help="Only what is declared; ask Azure nothing.")] = False,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """List schedules: declared ones, and a workspace's."""
    from datetime import datetime, timezone

    from allranks.azure import schedules
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console
    from allranks.schedules.finding import find_schedules
    from allranks.schedules.firings import firings
    from allranks.sdk.session import session

    now = datetime.now(timezone.utc)
    there = {} if local else schedules.applied(_connected(subscription, resource_group, workspace, config)[0])
    with session():
        declared = {each.schedule.name: each.schedule for each in find_schedules(target)}
    rows: list[dict[str, Any]] = []
    for name in sorted({*declared, *there}):
        mine, other = declared.get(name), there.get(name)
        trigger = mine.trigger if mine else other.trigger if other else None
        following = next(firings(trigger, now, now), None) if trigger else None
        if other is None:
            state = "declared" if local else "not applied"
        else:
            state = "enabled" if other.enabled else "disabled"
        row = {
            "name": name,
            "declared_in": mine.where if mine else None,
            "state": state,
            "differs": bool(mine and other and schedules.trigger_differs(mine.trigger, other.trigger)),
            "trigger": _described(trigger),
            "time_zone": trigger.time_zone if trigger else None,
            "next": following.isoformat() if following and state != "disabled" else None,
        }
        rows.append(row)
    if json:
        print(to_json(rows))
    else:
        _print_rows(console(), rows)


def enable(
    name: NameArgument,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Let a schedule of an Azure ML workspace fire again."""
    _switch(name, True, (subscription, resource_group, workspace, config), json)


def disable(
    name: NameArgument,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Keep a schedule of an Azure ML workspace from firing."""
    _switch(name, False, (subscription, resource_group, workspace, config), json)


def delete(
    name: NameArgument,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Delete a schedule of an Azure ML workspace. Its runs stay."""
    from allranks.azure import schedules
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console

    client, _ = _connected(subscription, resource_group, workspace, config)
    schedules.delete(client, schedules.named(schedules.applied(client), name))
    if json:
        print(to_json({"name": name, "state": "deleted"}))
    else:
        console().print(f"{name}: deleted", soft_wrap=True)


def _switch(name: str, on: bool, where: tuple[str, str, str, Path | None], json: bool) -> None:
    from allranks.azure import schedules
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console

    client, _ = _connected(*where)
    changed = schedules.switch(client, schedules.applied(client), name, on=on)
    state = "enabled" if on else "disabled"
    if json:
        print(to_json({"name": name, "state": state, "changed": changed}))
    else:
        console().print(f"{name}: {state}" + ("" if changed else ", as it was"), soft_wrap=True)


def _connected(
    subscription: str, resource_group: str, workspace: str, config: Path | None
) -> tuple[Any, WorkspaceName]:
    from allranks.azure.errors import service_errors
    from allranks.azure.workspace import connect, resolve
    from allranks.sdk.session import session

    options = workspace_options(subscription, resource_group, workspace, config=config)
    name = resolve(options)
    with session(), service_errors("connecting to Azure ML"):
        return connect(name.options()), name


def _described(trigger: Trigger | None) -> str | None:
    from allranks.schedules.triggers import in_words

    return in_words(trigger) if trigger else None


def _print_change(out: Console, change: Change, dry_run: bool) -> None:
    from allranks.runs.formatting import plain

    done = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}[change.action]
    would = change.action if change.action == "unchanged" else f"would {change.action}"
    out.print(plain(f"{change.name}: {would if dry_run else done}"), soft_wrap=True)
    for difference in change.differences:
        before = f"{difference.before} → " if difference.before else ""
        out.print(plain(f"  {difference.key}: {before}{difference.after}"), soft_wrap=True)


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
