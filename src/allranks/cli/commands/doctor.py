"""`allranks doctor`: check which stacks work on this machine."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.console import console, errors, to_json
from allranks.cli.options import JsonOption
from allranks.history.workspace import Workspace

if TYPE_CHECKING:
    from allranks.local.doctor.launches import Launch


@dataclass(frozen=True)
class _StackState:
    """The state of one stack on this machine.

    version: None if it is not installed
    works:   None if it was not tried
    wrong:   why it does not work
    install: the command that installs it
    """

    stack: str
    version: str | None
    works: bool | None
    wrong: str
    install: str


def doctor(
    start: Annotated[bool, typer.Option("--start/--no-start", help="Start two ranks of each stack to test it.")] = True,
    json: JsonOption = False,
) -> None:
    """Check which stacks work on this machine.

    Also print how to install the others. A stack works if two of its ranks can communicate. Exit with 1 if an installed
    stack does not work.
    """
    from allranks.local import gpus, preview
    from allranks.local.doctor.launches import FIRST

    instances = preview.kind_of("auto").name
    number = len(gpus.found(os.environ))
    out = console()
    if not json:
        out.print(f"instances  {instances}: {_INSTANCES[instances]}")
        out.print(f"GPUs       {number or 'none; training runs on the CPU'}\n")
    findings = []
    for launch in FIRST:
        with contextlib.nullcontext() if json else out.status(f"starting two ranks of {launch.stacks[0].name}"):
            findings.append(_finding(launch, start, Path.cwd()))
    if json:
        print(to_json({"instances": instances, "gpus": number, "stacks": findings}))
    else:
        _print(findings)
    if any(finding.works is False for finding in findings):
        raise typer.Exit(1)


_INSTANCES = {"rack": "each has its own network, hostname and /tmp", "loopback": "addresses on 127.0.0.0/8"}


def _finding(launch: Launch, start: bool, folder: Path) -> _StackState:
    from allranks.local.doctor.launches import TWO_RANKS
    from allranks.local.doctor.trial import run_trial

    stack = launch.stacks[0]
    version = stack.version(folder)
    if version is None or not start:
        return _StackState(stack.name, version, None, "", stack.install)
    layout = next(layout for layout in TWO_RANKS if layout in launch.layouts)
    with tempfile.TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True) as workspace:
        wrong = run_trial(launch, layout, "auto", Workspace(Path(workspace)), folder)
    return _StackState(stack.name, version, not wrong, wrong, stack.install)


def _print(findings: Sequence[_StackState]) -> None:
    from rich.text import Text

    from allranks.cli.views.tables import table_of

    table = table_of("stack", "version", "works", "how to get it")
    answers = {None: Text("not tried"), True: Text("yes", "green"), False: Text("no", "red")}
    for finding in findings:
        if finding.version is None:
            table.add_row(finding.stack, "-", "", finding.install, style="bright_black")
        else:
            table.add_row(finding.stack, finding.version, answers[finding.works], "")
    console().print(table)
    for finding in findings:
        if finding.wrong:
            text = f"\n{finding.stack} does not work: {finding.wrong}\n  try: {finding.install}"
            errors().print(text, markup=False)
