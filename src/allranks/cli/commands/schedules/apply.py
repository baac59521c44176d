"""`allranks schedules apply`: create and update the schedules of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import (
    AzureWorkspaceOption,
    ConfigOption,
    JsonOption,
    ResourceGroupOption,
    SchedulesArgument,
    SubscriptionOption,
    workspace_options,
)

if TYPE_CHECKING:
    from rich.console import Console

    from allranks.azure.schedules import Change


def apply(
    target: SchedulesArgument = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change; change nothing.")] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Delete schedules that were applied from these files and are no longer declared."),
    ] = False,
    subscription: SubscriptionOption = "",
    resource_group: ResourceGroupOption = "",
    workspace: AzureWorkspaceOption = "",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Create and update the schedules of a workspace.

    The declared schedules are applied. Unchanged schedules are skipped, and disabled schedules remain disabled.
    """
    from datetime import datetime, timezone

    from allranks.azure import schedules
    from allranks.azure.workspace import sign_in
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json

    client, name = sign_in(workspace_options(subscription, resource_group, workspace, config=config))
    applied = schedules.applied(client)
    planned = schedules.changes(target, name, applied, datetime.now(timezone.utc), prune=prune)
    out = console()

    def report(change: Change) -> None:
        if not json:
            _print_change(out, change, dry_run)

    if dry_run:
        for change in planned:
            report(change)
    else:
        schedules.apply(client, target, applied, planned, report)
    if json:
        print(to_json(planned))


def _print_change(out: Console, change: Change, dry_run: bool) -> None:
    from allranks.runs.formatting import plain

    done = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}[change.action]
    would = change.action if change.action == "unchanged" else f"would {change.action}"
    out.print(plain(f"{change.name}: {would if dry_run else done}"), soft_wrap=True)
    for difference in change.differences:
        before = f"{difference.before} → " if difference.before else ""
        out.print(plain(f"  {difference.key}: {before}{difference.after}"), soft_wrap=True)
