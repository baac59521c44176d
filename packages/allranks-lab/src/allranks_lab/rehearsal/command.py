"""`allranks rehearse`: rehearse evictions on this machine."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import (
    EnvironmentOption,
    FileArgument,
    FolderOption,
    JsonOption,
    LayoutOption,
    RunOptions,
    SampleOption,
    SetOption,
    StandInOption,
)
from allranks.cli.parameters import option
from allranks.cli.values import layout_settings, settings_of, stand_ins_of

if TYPE_CHECKING:
    from rich.console import Console

    from allranks.history.records import RunRecord
    from allranks.local.options import Options
    from allranks_lab.rehearsal.report import Report


def rehearse(
    file: FileArgument,
    *,
    evictions: Annotated[int, typer.Option("--evictions", min=1, metavar="N", help="How many evictions.")] = 20,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Of their training steps.")] = 1,
    elastic: Annotated[
        bool, option("--elastic", "Let instances come back later: an elastic step continues on fewer.")
    ] = False,
    settings: SetOption = None,
    stand_ins: StandInOption = None,
    layout: LayoutOption = "",
    environment: EnvironmentOption = "host",
    sample: SampleOption = "",
    execution: RunOptions,
    workspace: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Show that a training survives evictions.

    The pipeline runs once without evictions. Its trainings then run again, with evictions at random training steps,
    with and without a grace period. Exit with 1 if the final weights are not equal bit for bit (with --elastic, if the
    loss differs by more than 1e-4), or a sample is seen twice or never within an epoch. The report names the state that
    the script should save.

    For example: allranks rehearse pipelines/image_classification.py --evictions 5
    """
    from allranks.api import jobs
    from allranks.cli.console import console, print_warnings, to_json
    from allranks.cli.execute import Installations, execute
    from allranks.local import engine
    from allranks.workspace import Workspace
    from allranks_lab.rehearsal import rehearsal

    if execution.cold or execution.faults:
        raise typer.BadParameter(
            f"{'--cold' if execution.cold else '--fault'} cannot be given: see docs/rehearsals.md of allranks-lab"
        )
    place, values = Workspace.at(workspace), layout_settings(layout) | settings_of(settings) | stand_ins_of(stand_ins)
    options = execution.options(environment=environment, sample=sample, target=os.path.abspath(file), settings=values)
    with Installations() as report:
        plan = jobs.read(jobs.resolved(file), values, place, options, report=report, warn=print_warnings)

    def run(options: Options, origin: RunRecord | None) -> RunRecord:
        return execute(
            lambda observer: engine.run(plan, place, options, observer, origin),
            json,
            verbose=execution.verbose,
            prints_record=False,
            fails=False,
        )

    found = rehearsal.rehearse(plan, place, options, run, evictions=evictions, seed=seed, elastic=elastic)
    if json:
        print(to_json(found))
    else:
        _print_report(console(), found)
    if found.problems:
        sys.exit(1)


def _print_report(console: Console, report: Report) -> None:
    """Print the outcome, and the figures and the advice of each training."""
    from rich.text import Text

    from allranks.text import plain
    from allranks_lab.rehearsal.report import advice, facts

    style = "bold red" if report.problems else "green"
    console.print()
    console.print(Text.assemble(("rehearsal ", "bold"), (plain(report.summary), style)), soft_wrap=True)
    for problem in report.problems:
        console.print(Text(f"  {plain(problem)}", style="red"), soft_wrap=True)
    for training in report.trainings:
        console.print(Text(f"\n{plain(training.name)}", style="bold"))
        for name, value in facts(report, training):
            console.print(Text.assemble((f"  {plain(name):<27}", "bright_black"), plain(value)), soft_wrap=True)
        for text in advice(training) if report.problems else ():
            console.print(Text(f"  lost: {plain(text)}"), soft_wrap=True)
    console.print(f"\n  page  {plain(report.page)}", soft_wrap=True)
