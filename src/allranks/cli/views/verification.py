"""Print what `allranks verify-workspace` would submit, and what it found."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from allranks.azure.verification.comparison import grouped
from allranks.azure.verification.report import where
from allranks.azure.verification.results import Results
from allranks.cli.views.plan import step_layout
from allranks.plan.graph import Plan
from allranks.plan.walk import steps
from allranks.runs.formatting import count

_MINUTES = 5
"""Minutes for which each instance is estimated to be billed, most of them for its start and the pull of the image."""


def print_submission(out: Console, plan: Plan, file: str, compute: str) -> None:
    """Print the steps that would be submitted, and the instances that they take.

    compute: the size or the cluster, such as ``--size Standard_D4s_v5``
    """
    table = Table.grid(padding=(0, 2))
    for name, step in steps(plan.graph):
        table.add_row(name, step_layout(step), count(step.instance_count, "instance"))
    out.print(table)
    out.print(f"\n{cost(plan)}\n  request body  allranks submit {file} {compute} --dry-run", soft_wrap=True)


def cost(plan: Plan) -> str:
    """Return the instances that a submission takes, as text."""
    counts = [step.instance_count for _, step in steps(plan.graph)]
    return (
        f"{count(len(counts), 'step')} on {sum(counts)} instances in all, at least {max(counts)} at a time; "
        f"at {_MINUTES} minutes each, {sum(counts) * _MINUTES} instance-minutes"
    )


def print_results(out: Console, results: Results, page: Path) -> None:
    """Print each difference on a line, the important ones first, and where the report is."""
    for first, group in grouped(results.differences).items():
        out.print(
            f"{first.kind} {first.name}: {first.azure} on Azure ML, {first.local} locally "
            f"({where(group, results.compared)})",
            soft_wrap=True,
            markup=False,
        )
    out.print(f"{results.summary}\n  report  {page}", soft_wrap=True, markup=False)
