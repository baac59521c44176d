"""Print what `allranks clean` would remove, and how much space it frees."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from allranks.cli.views.tables import symbol
from allranks.runs.cleaning import LEFTOVER, RUN, SNAPSHOT, CleaningPlan
from allranks.runs.formatting import count, in_bytes, plain, when

_MOST_RUNS = 20


def print_cleaning(console: Console, plan: CleaningPlan) -> None:
    """Print each run, the other removals by kind, and the old runs that are not removed."""
    runs = [removal for removal in plan.removals if removal.run is not None]
    for removal in runs[:_MOST_RUNS]:
        assert removal.run is not None
        line = f" {plain(removal.run.id)}  {plain(removal.run.name)}  {when(removal.run.created)[:16]}"
        console.print(Text.assemble(symbol(removal.run.status), line, f"  {in_bytes(removal.size)}"), soft_wrap=True)
    if len(runs) > _MOST_RUNS:
        console.print(f"  and {count(len(runs) - _MOST_RUNS, 'more run')}")
    for kind, noun in ((RUN, "run"), (SNAPSHOT, "snapshot"), (LEFTOVER, "leftover folder")):
        sizes = [removal.size for removal in plan.removals if removal.kind == kind]
        if sizes:
            console.print(f"{count(len(sizes), noun)}: {in_bytes(sum(sizes))}")
    for kept in plan.kept:
        console.print(f"{plain(kept.run.id)} stays: {kept.reason}", soft_wrap=True)
    if not plan.removals:
        console.print("There is nothing to remove.")
    elif runs:
        console.print("Metrics and models in MLflow stay. Later runs do not reuse the results of removed ones.")


def print_removed(console: Console, plan: CleaningPlan) -> None:
    """Print the freed space."""
    console.print(f"removed; {in_bytes(plan.size)} freed")
