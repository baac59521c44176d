"""`allranks doctor`: check which stacks work on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from allranks.cli.options import JsonOption

if TYPE_CHECKING:
    from pathlib import Path

    from allranks.local.doctor.launches import Launch


@dataclass(frozen=True)
class _StackState:
    """What was found of one stack.

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
    from pathlib import Path

    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.local.doctor.launches import FIRST

    machine = _machine()
    out = console()
    if not json:
        out.print(f"instances  {machine['description']}\nGPUs       {machine['gpus'] or _NO_GPUS}\n")
    findings = []
    for launch in FIRST:
        waiting = f"starting two ranks of {launch.stacks[0].name}"
        with contextlib.nullcontext() if json else out.status(waiting):
            findings.append(_finding(launch, start, Path.cwd()))
    if json:
        print(to_json({"instances": machine["instances"], "gpus": machine["gpus"], "stacks": findings}))
    else:
        _print(findings)
    if any(finding.works is False for finding in findings):
        raise typer.Exit(1)


_NO_GPUS = "none; training runs on the CPU"


def _machine() -> dict[str, Any]:
    import os

    from allranks.local import gpus, preview

    descriptions = {
        "rack": "rack: each has its own network, hostname and /tmp",
        "loopback": "loopback: addresses on 127.0.0.0/8",
    }
    kind = preview.kind_of("auto").name
    return {"instances": kind, "description": descriptions[kind], "gpus": len(gpus.found(os.environ))}


def _finding(launch: Launch, start: bool, folder: Path) -> _StackState:
    stack = launch.stacks[0]
    version = stack.version(folder)
    if version is None or not start:
        return _StackState(stack.name, version, None, "", stack.install)
    wrong = _try_out(launch, folder)
    return _StackState(stack.name, version, not wrong, wrong, stack.install)


def _try_out(launch: Launch, folder: Path) -> str:
    import tempfile
    from pathlib import Path

    from allranks.local.doctor.launches import TWO_RANKS
    from allranks.local.doctor.trial import run_trial
    from allranks.runs.workspace import Workspace

    layout = next(layout for layout in TWO_RANKS if layout in launch.layouts)
    with tempfile.TemporaryDirectory(prefix="allranks-", ignore_cleanup_errors=True) as workspace:
        return run_trial(launch, layout, "auto", Workspace(Path(workspace)), folder)


def _print(findings: Sequence[_StackState]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from allranks.cli.console import console, errors

    table = Table(box=box.SIMPLE_HEAD, header_style="bright_black", show_edge=False, pad_edge=False)
    for column in ("stack", "version", "works", "how to get it"):
        table.add_column(column)
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
