"""Draws what a terminal shows as an SVG: one screen, or several that follow each other.

It is animated by CSS alone, and asks no server for a font. Where nothing may move, its last screen is shown.
"""

import copy
import io
import re
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from allranks.cli.views.summary import summary
from allranks.cli.views.tree import tree
from allranks.history.records import Progress, RunRecord, Status

WIDTH, HEIGHT = 96, 30
SCREENS = 7
"""Screens of a run before its end, and as many of its longest curve."""
SECONDS, LAST = 0.6, 6.0
"""How long each screen is shown, and the last one."""
COLOURS = [(255, 123, 114), (86, 211, 141), (227, 179, 65), (88, 166, 255), (210, 153, 255), (86, 212, 221)]
THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [(72, 79, 88), *COLOURS, (177, 186, 196)],
    [(125, 135, 146), *COLOURS, (255, 255, 255)],
)
LINE = 24.4
"""The height of a line in an SVG by rich."""

FRAME = """\
<svg viewBox="0 0 {width} {height:g}" xmlns="http://www.w3.org/2000/svg">
<style>
text {{ font: 20px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre }}
{styles}
.screen {{ visibility: hidden }}
.last {{ visibility: visible }}
@media (prefers-reduced-motion: no-preference) {{
.screen {{ visibility: hidden; animation: show {total:g}s step-end infinite }}
.last {{ animation-name: stay }}
@keyframes show {{ 0% {{ visibility: visible }} {part:.3f}% {{ visibility: hidden }} }}
@keyframes stay {{ 0% {{ visibility: visible }} {stay:.3f}% {{ visibility: hidden }} }}
}}
</style>
<rect width="{width}" height="{height:g}" rx="8" fill="#161b22"/>
<g fill="#484f58"><circle cx="22" cy="20" r="6"/><circle cx="42" cy="20" r="6"/><circle cx="62" cy="20" r="6"/></g>
{screens}
</svg>
"""


def at(run: RunRecord, moment: float) -> RunRecord:
    """The run as it stood at a moment, in seconds since the epoch."""
    earlier = copy.deepcopy(run)
    earlier.status, earlier.ended, earlier.executions = Status.RUNNING, None, []
    for step in earlier.steps:
        if step.reused_from or (step.ended is not None and step.ended <= moment):
            continue
        step.status, step.ended, step.notes = Status.NOT_STARTED, None, []
        if step.started is None or step.started > moment:
            step.started, step.progress, step.metrics = None, None, {}
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


def run_picture(run: RunRecord) -> str:
    """Return the SVG of a run that has ended: its tree as it grows, and its summary."""
    prompt = _prompt(f"allranks run {run.source}")
    assert run.ended is not None
    curve = max((points for step in run.steps for points in step.metrics.values() if points), key=len)
    moments = sorted((*_between(run.created, run.ended), *_between(curve[0].time, curve[-1].time)))
    growing = [[prompt, "", tree(at(run, moment), moment, WIDTH)] for moment in moments]
    return picture([[prompt], *growing, [prompt, "", tree(run, run.ended, WIDTH), "", summary(run)]])


def _between(begin: float, end: float) -> list[float]:
    return [begin + (end - begin) * share / SCREENS for share in range(1, SCREENS)]


def output_picture(command: str, output: str) -> str:
    """Return the SVG of a command and its output, with ANSI's codes for colours."""
    return picture([[_prompt(command), "", Text.from_ansi(output.rstrip())]])


def _prompt(command: str) -> Text:
    return Text.assemble(("$ ", "bright_black"), command)


def picture(screens: Sequence[Sequence[RenderableType]]) -> str:
    """Return the SVG of screens that follow each other. Each is a list of what rich prints; of more lines than a screen
    has, the last ones are shown."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False, markup=False, emoji=False
    )
    lines = [
        [line for part in screen for line in console.render_lines(part, pad=False)][-HEIGHT:] for screen in screens
    ]
    most = max(map(len, lines))
    for screen in lines:
        for line in [*screen, *[[]] * (most - len(screen))]:
            console.print(Segments([*line, Segment.line()]))
    styles, texts = console.export_svg(theme=THEME, code_format="{styles}\0{matrix}", unique_id="t").split("\0")
    groups = [""] * len(screens)
    for text in re.findall(r"<text .*?</text>", texts):
        y = float(re.search(r' y="([\d.]+)"', text)[1])
        screen, line = divmod(int(y // LINE), most)
        text = re.sub(r' clip-path="[^"]*"', "", text).replace("&#160;", " ")
        groups[screen] += re.sub(r' y="[\d.]+"', f' y="{60 + line * LINE:g}"', text)
    total = SECONDS * (len(screens) - 1) + LAST
    drawn = [
        f'<g class="screen{" last" * (index == len(screens) - 1)}" style="animation-delay:{index * SECONDS:g}s"'
        f' transform="translate(16 0)">{group}</g>'
        for index, group in enumerate(groups)
    ]
    return FRAME.format(
        width=int(WIDTH * 12.2) + 32,
        height=60 + most * LINE,
        styles=styles,
        screens="\n".join(drawn),
        total=total,
        part=100 * SECONDS / total,
        stay=100 * LAST / total,
    )
