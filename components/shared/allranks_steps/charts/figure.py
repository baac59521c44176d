"""Charts by matplotlib as SVG: inline in a page, in its font and colours, or as a file of their own."""

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

INK, SOFT, LINE = "#1b1f24", "#5b6570", "#e3e6ea"
SERIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#4b5563", "#96690a")
"""The colours of style.css in light mode."""

IDEAL: dict[str, Any] = {"color": SOFT, "linestyle": (0, (5, 4)), "linewidth": 1.2}
"""Style of a line for perfect or expected values."""

_VARIABLES = {INK: "--ink", SOFT: "--soft", LINE: "--line"} | {each: f"--s{at}" for at, each in enumerate(SERIES)}
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "allranks",
    "font.size": 11,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.labelcolor": SOFT,
    "axes.prop_cycle": cycler(color=SERIES),
    "grid.color": LINE,
    "grid.linewidth": 1,
    "lines.linewidth": 2,
    "lines.markersize": 8,
    "lines.solid_capstyle": "round",
    "text.color": INK,
    "legend.frameon": False,
    **{f"axes.spines.{side}": False for side in ("top", "right", "bottom", "left")},
    **{f"{axis}tick.{key}": value for axis in "xy" for key, value in (("color", SOFT), ("major.size", 0))},
    **{f"{axis}tick.minor.size": 0 for axis in "xy"},
}


def svg(draw: Callable[[Axes], object], width: int = 520, height: int = 300, background: str = "none") -> str:
    """Return a chart as SVG. draw: draws it; width, height: in pixels"""
    with matplotlib.rc_context(_STYLE):
        figure = Figure((width / 72, height / 72), layout="constrained", facecolor=background)
        axes = figure.subplots()
        axes.set_facecolor("none")
        draw(axes)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def inline(label: str, draw: Callable[[Axes], object], width: int = 520, height: int = 300) -> str:
    """Return a chart for a page: its colours follow the reader's light or dark mode. label: for screen readers"""
    _, _, content = svg(draw, width, height).partition('version="1.1">')
    content = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", content, flags=re.DOTALL)
    content = re.sub(r'font-family: [^;"]*', "font-family: inherit", content).replace("xlink:href", "href")
    for colour, variable in _VARIABLES.items():
        content = content.replace(colour, f"var({variable})")
    return f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}">{content}'


def log_scale(axes: Axes) -> None:
    """Make the y axis logarithmic, with marks at 1, 2 and 5 times the powers of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
