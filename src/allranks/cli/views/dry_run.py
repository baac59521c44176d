"""Print what a run would do: the plan, each rank's environment, and the copied files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import date
from json import dumps as to_json
from json import loads as from_json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from allranks.checks.plan import warnings
from allranks.cli.console import console, plain
from allranks.cli.views.plan import plan_json, print_plan
from allranks.cli.views.problems import print_machine, print_warnings
from allranks.cli.views.uploads import print_uploads
from allranks.errors import InputError
from allranks.local import capacity, environments, preview, requirements
from allranks.local.options import Options
from allranks.local.selection import Mode, Modes, modes_of
from allranks.plan import codec
from allranks.plan.graph import Plan
from allranks.plan.secrets import shown
from allranks.plan.walk import steps
from allranks.sdk.uploads import Upload
from allranks.workspace import Workspace

_WORDS = {
    Mode.RUN: "run, or reuse a result",
    Mode.FRESH: "run",
    Mode.REUSE: "reuse an earlier result",
    Mode.EXCLUDED: "do not run",
}


def print_dry_run(
    read: Callable[[Path], tuple[Plan, list[Upload]]], workspace: Workspace, options: Options, json: bool
) -> None:
    """Print a plan without starting anything. Raise InputError if it cannot run on any machine.

    read: returns the plan, with its code copied to a folder, and what is uploaded
    """
    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        plan, uploads = read(Path(snapshots))
        plan, differences = environments.with_interpreters(plan, options.environment, makes=False)
        modes = modes_of(plan.graph, options.selection)
        problems, lacking = requirements.all_problems(plan)
    if problems:
        raise InputError(*problems)
    # Remove secrets, so that the output contains none.
    plan = codec.loads(to_json(shown(from_json(codec.dumps(plan)))))
    kind = preview.kind_of(options.instances)
    if problems := requirements.instance_problems(plan, options, kind):
        raise InputError(*problems)
    previews = preview.previews(plan, workspace, kind)
    if json:
        print(plan_json(plan, previews, uploads))
    else:
        print_plan(console(), plan, previews)
        print_uploads(console(), uploads)
        if options.selection:
            _print_selection(console(), plan, modes)
    print_warnings([*warnings(plan, date.today()), *capacity.warnings(plan), *differences])
    print_machine(lacking)


def _print_selection(console: Console, plan: Plan, modes: Modes) -> None:
    """Print the steps by what the run does with them."""
    width = max(map(len, _WORDS.values()))
    for mode, words in _WORDS.items():
        names = [plain(path) for path, _ in steps(plan.graph) if modes.at(path) is mode]
        if names:
            console.print(Text.assemble((f"  {words:<{width}}  ", "bright_black"), ", ".join(names)), soft_wrap=True)
