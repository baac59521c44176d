"""Print what a run does with each step: ``--from``, ``--only`` and ``--until`` in a dry run."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from allranks.cli.errors import plain
from allranks.local.selection import Mode, Modes
from allranks.plan.graph import Plan, steps

_WORDS = {
    Mode.RUN: "run, or reuse a result",
    Mode.FRESH: "run",
    Mode.REUSE: "reuse an earlier result",
    Mode.EXCLUDED: "do not run",
}


def print_selection(console: Console, plan: Plan, modes: Modes) -> None:
    """Print the steps by what the run does with them."""
    width = max(map(len, _WORDS.values()))
    for mode, words in _WORDS.items():
        names = [plain(path) for path, _ in steps(plan.graph) if modes.of(path) is mode]
        if names:
            console.print(Text.assemble((f"  {words:<{width}}  ", "bright_black"), ", ".join(names)), soft_wrap=True)
