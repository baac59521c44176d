"""`allranks schedules apply`: create and update the schedules of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.option_groups import AzureOptions
from allranks.cli.options import JsonOption, OfflineOption, SchedulesArgument

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rich.console import Console

    from allranks.azure.schedules import Change
    from allranks.azure.workspace import WorkspaceOptions


def apply(
    target: SchedulesArgument = None,
    compute: Annotated[
        str,
        typer.Option("--compute", metavar="NAME", help="Cluster for steps that do not name one.", show_default=False),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change; change nothing.")] = False,
    offline: OfflineOption = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Delete schedules that were applied from these files and are no longer declared."),
    ] = False,
    *,
    azure: AzureOptions,
    json: JsonOption = False,
) -> None:
    """Create and update the schedules of a workspace.

    The declared schedules are applied. Unchanged schedules are skipped, and disabled schedules remain disabled.
    """
    from allranks.cli.console import console, errors
    from allranks.cli.options import require_dry_run
    from allranks.cli.views.json import to_json

    require_dry_run(offline, dry_run)
    options = azure.of()
    out = console()
    if dry_run:
        planned, comparison = _planned(options, target, prune, compute, offline)
        if not json:
            for change in planned:
                _print_change(out, change, dry_run)
        if comparison:
            (errors() if json else out).print(comparison, soft_wrap=True)
    else:
        planned = _applied(
            options, target, prune, compute, lambda change: None if json else _print_change(out, change, dry_run)
        )
    if json:
        print(to_json(planned))


def _planned(
    options: WorkspaceOptions, target: Path | None, prune: bool, compute: str, only_offline: bool
) -> tuple[list[Change], str]:
    """Return what would change; and what it was compared with, if that is not the service."""
    from datetime import datetime, timezone

    from allranks.azure import schedules
    from allranks.azure.last_state import LastState, compared_with, online_or_offline, where_of, workspace_of
    from allranks.azure.workspace import sign_in

    now = datetime.now(timezone.utc)
    state = LastState.of(where_of(options))

    def online() -> tuple[list[Change], str]:
        client, name = sign_in(options)
        clusters, seen = schedules.refresh_clusters(client, state), schedules.refresh_schedules(client, state)
        return schedules.changes(target, name, seen, now, prune=prune, compute=compute, clusters=clusters), ""

    def offline(reason: str) -> tuple[list[Change], str]:
        where, known, clusters = workspace_of(options), schedules.known(state), state.clusters
        planned = schedules.changes(target, where, known, now, prune=prune, compute=compute, clusters=clusters)
        comparison = compared_with([state.listed], "schedules")
        return planned, f"{reason}; {comparison}" if reason else comparison

    return online_or_offline(online, offline, only_offline=only_offline)


def _applied(
    options: WorkspaceOptions, target: Path | None, prune: bool, compute: str, report: Callable[[Change], None]
) -> list[Change]:
    import contextlib
    from datetime import datetime, timezone

    from allranks.azure import schedules
    from allranks.azure.errors import AzureError
    from allranks.azure.last_state import LastState, where_of
    from allranks.azure.workspace import sign_in
    from allranks.errors import InputError

    client, name = sign_in(options)
    state = LastState.of(where_of(options))
    clusters, applied = schedules.refresh_clusters(client, state), schedules.refresh_schedules(client, state)
    now = datetime.now(timezone.utc)
    planned = schedules.changes(target, name, applied, now, prune=prune, compute=compute, clusters=clusters)
    try:
        schedules.apply(client, target, applied, planned, report, compute, clusters)
    finally:
        if any(change.action != schedules.KEEP for change in planned):
            # Only a later dry run needs the new state.
            with contextlib.suppress(AzureError, InputError):
                schedules.refresh_schedules(client, state)
    return planned


def _print_change(out: Console, change: Change, dry_run: bool) -> None:
    from allranks.runs.formatting import plain

    done = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}[change.action]
    would = change.action if change.action == "unchanged" else f"would {change.action}"
    out.print(plain(f"{change.name}: {would if dry_run else done}"), soft_wrap=True)
    for difference in change.differences:
        before = f"{difference.before} → " if difference.before else ""
        out.print(plain(f"  {difference.key}: {before}{difference.after}"), soft_wrap=True)
