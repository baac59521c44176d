"""`allranks clean`: remove old runs and what no run needs."""

import time
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from allranks.cli.console import console
from allranks.cli.options import FolderOption, YesOption, confirm
from allranks.cli.parameters import option
from allranks.cli.values import seconds
from allranks.cli.views import symbol
from allranks.history import cleaning
from allranks.history.cleaning import LEFTOVER, RUN, SNAPSHOT, CleaningPlan
from allranks.local.instances import temporary
from allranks.scheduler.ledger import Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.text import count, in_bytes, plain, when
from allranks.workspace import Workspace

DEFAULT_AGE = "30d"
_MOST_RUNS = 20


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
    dry_run: Annotated[bool, option("--dry-run", "Show what would be removed; remove nothing.")] = False,
    yes: YesOption = False,
    folder: FolderOption = None,
) -> None:
    """Remove old runs and files that no run needs.

    It lists them first and asks you. A run that is being executed stays, and one whose results a newer run reuses.
    """
    workspace = Workspace.at(folder)
    age = seconds(older_than or (DEFAULT_AGE if not keep else "0d"), "--older-than")
    plans, leftovers = SchedulerPaths(workspace).read(Ledger.plans), temporary.leftovers(workspace.temporary)
    plan = cleaning.plan_cleaning(workspace, before=time.time() - age, keep=keep, plans=plans, leftovers=leftovers)
    out = console()
    _print_plan(out, plan)
    if dry_run or not plan.removals:
        return
    confirm("Remove them?", "allranks clean", yes)
    freed = in_bytes(plan.size)
    cleaning.clean(workspace, plan, temporary.remove)
    temporary.sweep(workspace.temporary)
    out.print(f"removed; {freed} freed")


def _print_plan(out: Console, plan: CleaningPlan) -> None:
    """Print the runs to remove, the other removals by kind, and the old runs that stay."""
    runs = [(removal.run, removal.size) for removal in plan.removals if removal.run is not None]
    for run, size in runs[:_MOST_RUNS]:
        line = f" {plain(run.id)}  {plain(run.name)}  {when(run.created)[:16]}  {in_bytes(size)}"
        out.print(Text.assemble(symbol(run.status), line), soft_wrap=True)
    if len(runs) > _MOST_RUNS:
        out.print(f"  and {count(len(runs) - _MOST_RUNS, 'more run')}")
    for kind, noun in ((RUN, "run"), (SNAPSHOT, "snapshot"), (LEFTOVER, "leftover folder")):
        sizes = [removal.size for removal in plan.removals if removal.kind == kind]
        if sizes:
            out.print(f"{count(len(sizes), noun)}: {in_bytes(sum(sizes))}")
    for run, reason in plan.kept:
        out.print(f"{plain(run.id)} stays: {reason}", soft_wrap=True)
    if not plan.removals:
        out.print("There is nothing to remove.")
    elif runs:
        out.print("Metrics and models in MLflow remain. Later runs do not reuse the results of removed ones.")
