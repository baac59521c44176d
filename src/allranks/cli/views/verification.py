"""Print what `allranks verify-workspace` would submit, and what it found."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from allranks.azure.verification.report import Report, grouped, where
from allranks.azure.verification.results import MINUTES, Submission
from allranks.cli.views.plan import step_layout
from allranks.runs.formatting import count


def print_submission(out: Console, submission: Submission, file: str, compute: str) -> None:
    """Print the steps that would be submitted, and the instances that they take.

    compute: the size or the cluster, such as ``--size Standard_D4s_v5``
    """
    table = Table.grid(padding=(0, 2))
    for name, step in submission.steps.items():
        table.add_row(name, step_layout(step), count(step.instance_count, "instance"))
    out.print(table)
    out.print(f"\n{cost(submission)}\n  request body  allranks submit {file} {compute} --dry-run", soft_wrap=True)


def cost(submission: Submission) -> str:
    """Return the instances that a submission takes, as text."""
    return (
        f"{count(len(submission.steps), 'step')} on {submission.at_once} instances in all, at least "
        f"{submission.at_least} at a time; at {MINUTES} minutes each, {submission.instance_minutes} instance-minutes"
    )


def print_report(out: Console, report: Report, page: Path) -> None:
    """Print each difference on a line, the important ones first, and where the report is."""
    for first, group in grouped(report.differences).items():
        out.print(
            f"{first.kind} {first.name}: {first.azure} on Azure ML, {first.local} locally "
            f"({where(group, report.compared)})",
            soft_wrap=True,
            markup=False,
        )
    out.print(f"{report.summary}\n  report  {page}", soft_wrap=True, markup=False)
