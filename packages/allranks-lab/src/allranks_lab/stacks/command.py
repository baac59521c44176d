"""`allranks verify-stacks`: start two ranks of each installed stack."""

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.text import Text

from allranks.cli.console import console, errors, to_json
from allranks.cli.options import JsonOption
from allranks.cli.views import table_of
from allranks.workspace import Workspace
from allranks_lab.stacks.launches import FIRST, TWO_RANKS, Launch, run_trial


@dataclass(frozen=True)
class _Trial:
    """The outcome of a stack's simplest launch with two ranks.

    works: None if the stack is not installed
    wrong: why it does not work
    """

    stack: str
    works: bool | None
    wrong: str
    install: str


def verify_stacks(json: JsonOption = False) -> None:
    """Start two ranks of each installed stack, and check that they communicate.

    Exit with 1 if an installed stack does not work. `allranks doctor` lists the versions, and starts nothing.
    """
    trials = []
    for launch in FIRST:
        with contextlib.nullcontext() if json else console().status(f"starting two ranks of {launch.stacks[0].name}"):
            trials.append(_try(launch, Path.cwd()))
    if json:
        print(to_json(trials))
    else:
        _print(trials)
    if any(trial.works is False for trial in trials):
        raise typer.Exit(1)


def _try(launch: Launch, folder: Path) -> _Trial:
    stack = launch.stacks[0]
    if stack.version(folder) is None:
        return _Trial(stack.name, None, "", stack.install)
    layout = next(layout for layout in TWO_RANKS if layout in launch.layouts)
    with tempfile.TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True) as workspace:
        wrong = run_trial(launch, layout, "auto", Workspace(Path(workspace)), folder)
    return _Trial(stack.name, not wrong, wrong, stack.install)


def _print(trials: list[_Trial]) -> None:
    table = table_of("stack", "works", "how to get it")
    for trial in trials:
        if trial.works is None:
            table.add_row(trial.stack, "-", trial.install, style="bright_black")
        else:
            table.add_row(trial.stack, Text("yes", "green") if trial.works else Text("no", "red"), "")
    console().print(table)
    for trial in trials:
        if trial.wrong:
            text = f"\n{trial.stack} does not work: {trial.wrong}\n  try: {trial.install}"
            errors().print(text, markup=False)
