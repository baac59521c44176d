"""Draws a run as the terminal shows it, while it trains and at its end, as an SVG for the README.

allranks show RUN --json | python tools/make_run_picture.py > docs/pictures/run.svg
"""

import copy
import io
import json
import os
import re
import sys

from cattrs import Converter
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from allranks.cli.views.summary import summary
from allranks.cli.views.tree import tree
from allranks.history.records import Progress, RunRecord, Status

WIDTH = 96
SHARE = 0.62
"""How much of the longest curve is drawn in the first picture."""
COLOURS = [(255, 123, 114), (86, 211, 141), (227, 179, 65), (88, 166, 255), (210, 153, 255), (86, 212, 221)]
THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [(72, 79, 88), *COLOURS, (177, 186, 196)],
    [(125, 135, 146), *COLOURS, (255, 255, 255)],
)


def at(run: RunRecord, moment: float) -> RunRecord:
    """The run as it stood at a moment, in seconds since the epoch."""
    earlier = copy.deepcopy(run)
    earlier.status, earlier.ended = Status.RUNNING, None
    for step in earlier.steps:
        if step.reused_from or (step.ended is not None and step.ended <= moment):
            continue
        step.status, step.ended, step.notes = Status.NOT_STARTED, None, []
        if step.started is None or step.started > moment:
            continue
        step.status = Status.RUNNING
        for rank in step.ranks:
            rank.status = Status.RUNNING
        step.metrics = {
            name: [point for point in points if point.time <= moment] for name, points in step.metrics.items()
        }
        if step.progress is not None:
            done = max((points[-1].step for points in step.metrics.values() if points), default=0)
            epochs = step.progress.epoch
            epoch = None if epochs is None else int(epochs * done / max(step.progress.done, 1))
            step.progress = Progress(done, step.progress.total, epoch)
    return earlier


def picture(run: RunRecord) -> str:
    """The SVG; it asks no server for a font."""
    curve = max((points for step in run.steps for points in step.metrics.values() if points), key=len)
    moment = curve[0].time + SHARE * (curve[-1].time - curve[0].time)
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False, markup=False, emoji=False
    )
    console.print(Text.assemble(("$ ", "bright_black"), f"allranks run {run.source}"))
    console.print()
    console.print(tree(at(run, moment), moment, WIDTH))
    console.print(Text("\n⋮\n", style="bright_black"))
    console.print(summary(run), soft_wrap=True)
    console.print()
    code_format = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    code_format = code_format.replace("Fira Code", "ui-monospace, DejaVu Sans Mono, Menlo, Consolas")
    return console.export_svg(title="allranks", theme=THEME, code_format=code_format, unique_id="run")


if __name__ == "__main__":
    # Paths are the project's, not this machine's.
    text = sys.stdin.read().replace(f"{os.getcwd()}/", "")
    sys.stdout.write(picture(Converter().structure(json.loads(text), RunRecord)))
