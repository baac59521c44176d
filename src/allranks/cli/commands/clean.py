"""`allranks clean`: remove old runs and what no run needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import FolderOption, confirm, option

if TYPE_CHECKING:
    from allranks.runs.cleaning import CleaningPlan
    from allranks.runs.workspace import Workspace

DEFAULT_AGE = "30d"


def clean(
    older_than: Annotated[
        str | None,
        option(
            "--older-than",
            f"Remove runs that are older, such as 12h, 7d or 4w. Default: {DEFAULT_AGE}, or any with --keep.",
            "AGE",
        ),
    ] = None,
    keep: Annotated[int, typer.Option("--keep", min=0, metavar="N", help="Keep the newest N runs.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
    workspace: FolderOption = None,
) -> None:
    """Remove old runs and files that no run needs.

    It lists them first and asks you. A run that is being executed stays, and one whose results a newer run reuses.
    """
    import time

    from allranks.cli.console import console
    from allranks.cli.values import seconds
    from allranks.cli.views.cleaning import print_cleaning, print_removed
    from allranks.runs.workspace import Workspace

    place = Workspace.at(workspace)
    age = seconds(older_than or (DEFAULT_AGE if not keep else "0d"), "--older-than")
    plan = _plan(place, time.time() - age, keep)
    out = console()
    print_cleaning(out, plan)
    if dry_run or not plan.removals:
        return
    confirm("Remove them?", "allranks clean", yes)
    _remove(place, plan)
    print_removed(out, plan)


def _plan(workspace: Workspace, before: float, keep: int) -> CleaningPlan:
    from allranks.local.instances import temporary
    from allranks.local.scheduler.place import SchedulesPlace
    from allranks.runs.cleaning import plan_cleaning

    plans = SchedulesPlace(workspace).plans()
    return plan_cleaning(
        workspace, before=before, keep=keep, plans=plans, leftovers=temporary.leftovers(workspace.temporary)
    )


def _remove(workspace: Workspace, plan: CleaningPlan) -> None:
    from allranks.local.instances import temporary
    from allranks.runs.cleaning import clean as carry_out

    carry_out(workspace, plan, temporary.remove)
    temporary.sweep(workspace.temporary)
