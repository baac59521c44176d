"""`allranks clean`: remove old runs and what no run needs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import FolderOption

if TYPE_CHECKING:
    from allranks.runs.cleaning import CleaningPlan
    from allranks.runs.workspace import Workspace

DEFAULT_AGE = "30d"


def clean(
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help=f"Remove runs that are older, such as 12h, 7d or 4w. Default: {DEFAULT_AGE}, or any with --keep.",
            show_default=False,
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

    from allranks.cli.ages import seconds
    from allranks.cli.console import console
    from allranks.cli.views.cleaning import print_cleaning, print_removed
    from allranks.errors import InputError, Problem
    from allranks.runs.workspace import Workspace

    place = Workspace.at(workspace)
    age = seconds(older_than or (DEFAULT_AGE if not keep else "0d"), "--older-than")
    plan = _plan(place, time.time() - age, keep)
    out = console()
    print_cleaning(out, plan)
    if dry_run or not plan.removals:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise InputError(Problem("allranks clean", "there is no terminal to ask", "", "agree to it: --yes"))
        if not typer.confirm("Remove them?"):
            sys.exit(1)
    _remove(place, plan)
    print_removed(out, plan)


def _plan(workspace: Workspace, before: float, keep: int) -> CleaningPlan:
    from allranks.local.instances import temporary
    from allranks.local.scheduler.ledger import SchedulesPlace
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
