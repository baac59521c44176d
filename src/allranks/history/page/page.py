"""The page of a run: one self-contained HTML file, which can be opened from a disk or sent by mail."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from allranks.history import curves, formatting
from allranks.history.nested import count_steps, in_every_iteration, sweeps
from allranks.history.page import chart, graphs, html_page, log_excerpts, parallel_coordinates, timeline
from allranks.history.page.figures import Confusion, confusions, shared_charts, usage_facts
from allranks.history.page.items import Item, details, items_of, runs, states, stretches
from allranks.history.records import Point, RunRecord, Status, StepRecord
from allranks.text import NOTHING, clock, count, duration, number, plain, when
from allranks.version import __version__

_HEADLINES = 4
_LAYOUTS = 4
_VALUES = 3
_MATRICES = 12
_WIDEST = 22
"""Maximum characters of the smaller text in the box of a node."""
_LIMITS = {"MOST_NOTES": 50, "MOST_TRIALS": 100, "MOST_VERDICTS": 10, "UNFOLDED_VERDICTS": 2, "UNFOLDED_RANKS": 7}
"""Maximum numbers that the templates show. Of a sweep's trials, the best ones are shown."""
_LONGEST = 80
_ORDER = (
    *(Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.INTERRUPTED),
    *(Status.RUNNING, Status.PREPARING, Status.NOT_STARTED, Status.SKIPPED),
)


def page(run: RunRecord, now: float, known: frozenset[str] = frozenset()) -> str:
    """Return the page as text.

    now:   end of everything that is still running, in seconds since the epoch
    known: secrets of the run, which are masked in the logs
    """
    items = items_of(run.steps)
    steps = [step for step in run.steps if step.kind == "command"]
    links = Links(run.folder)
    environment = templates()
    text = environment.get_template("main.html").render(
        run=run,
        now=now,
        link=links.link,
        shown=links.shown,
        page_of=links.page_of,
        logs=log_excerpts.excerpts(steps, known),
        items=items,
        progress=_progress(steps),
        headlines=_headlines(run.steps),
        layouts=list(dict.fromkeys(map(formatting.step_layout, steps)))[:_LAYOUTS],
        graphs=graphs.graphs(items),
        timeline=timeline.timeline(run, now, items),
        sweeps=[sweep for sweep in sweeps(run.steps) if sweep.trials],
        charts=shared_charts(steps),
        confusions=_matrices(steps),
        details=details(items, run.id),
        usage=lambda step: usage_facts(step, now),
    )
    scripts = ["anchors.js", "tooltip.js", "search.js", "state.js"]
    values = {"title": f"{run.display_name or run.name} · {run.status.label}", "is_live": not run.status.ended}
    return html_page.render(environment, "page.html", "style.css", scripts, main=Markup(text), **values)


def _headlines(steps: list[StepRecord]) -> list[tuple[StepRecord, str, Point]]:
    """Return the most relevant values: of the last of several iterations, and without those of a sweep's trials."""
    by_step: dict[tuple[str, str], tuple[StepRecord, str, Point]] = {}
    for headline in curves.headline([step for step in steps if not step.is_trial], len(steps)):
        step, name, _ = headline
        by_step.setdefault((in_every_iteration(step.name), name), headline)
    times = Counter(name for _, name in by_step)
    chosen = {name: headline for (_, name), headline in reversed(by_step.items())}
    # A metric of many equal steps is shown once.
    return [
        headline for headline in by_step.values() if times[headline[1]] <= _HEADLINES or chosen[headline[1]] is headline
    ][:_HEADLINES]


def _matrices(steps: list[StepRecord]) -> list[Confusion]:
    """Return the confusion matrices of the run that fit on a page. Of several iterations, the last one is used."""
    last_steps = {in_every_iteration(step.name): step for step in steps if step.artifacts}
    matrices = (confusion for step in last_steps.values() for confusion in confusions(step))
    return list(islice(matrices, _MATRICES))


@cache
def templates() -> Environment:
    """Return the environment of the templates, with the functions that they call."""
    environment = html_page.templates("allranks.history.page", _finalize)
    functions = (
        *(curves.best, graphs.branches, count_steps, runs, states, stretches, clock, count, duration, number, when),
        *(formatting.cause, formatting.what_to_do, formatting.elapsed, formatting.models_of, formatting.outputs_of),
        *(formatting.reason, formatting.reported_results, _about, _has_more_metrics, _last_values, _notes_of),
        *(_rank_anchor, _shorten, _step_anchor, _what, parallel_coordinates.parallel_coordinates),
    )
    environment.globals.update({function.__name__.lstrip("_"): function for function in functions})
    sizes = {
        "chart_size": chart,
        "timeline_size": timeline,
        "parallel_size": parallel_coordinates,
        "version": __version__,
    }
    environment.globals.update(NOTHING=NOTHING, RUN=graphs.RUN, SYMBOLS=formatting.SYMBOLS, **sizes, **_LIMITS)
    return environment


def _finalize(value: Any) -> Any:
    """Remove characters that HTML forbids from names and log lines."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _about(item: Item, now: float) -> str:
    """Return the text beside a node's name: layout, decision, and duration or the run whose result it reuses."""
    step = item.record
    parts = [item.layout]
    if (decided := graphs.outcome(item)) is not None:
        parts.append(str(decided).lower())
    if step.reused_from:
        parts.append(f"reused from {step.reused_from}")
    elif step.status is not Status.SKIPPED:
        parts.append(duration(formatting.elapsed(step, now)))
    return " · ".join(filter(None, parts))


def _what(item: Item, now: float) -> str:
    """Return a shorter `_about` that fits into the box of a node."""
    if item.record.reused_from:
        return f"{item.layout} · reused"
    if item.status is Status.SKIPPED:
        return item.status.label
    if not item.record.started:
        return item.layout
    text = _about(item, now)
    # The details show the type of the distribution.
    return text if len(text) <= _WIDEST else text.removeprefix(f"{item.record.distribution} ")


def _last_values(step: StepRecord) -> str:
    """Return the progress of a step, and the last values of its metrics that fit on one line."""
    texts = [text] if (text := formatting.progress(step)) else []
    texts += [f"{name} {number(points[-1].value)}" for name, points in step.metrics.items() if points]
    return ", ".join(texts[:_VALUES]) + (", …" if len(texts) > _VALUES else "")


def _has_more_metrics(step: StepRecord) -> bool:
    """Return whether `_last_values` does not show all metrics of a step completely."""
    return len(step.metrics) > _VALUES or any(len(points) > 1 for points in step.metrics.values())


def _notes_of(steps: list[StepRecord]) -> list[tuple[StepRecord, str]]:
    return [(step, note) for step in steps for note in step.notes]


def _step_anchor(path: str) -> str:
    """Return the id of a step on the page. It depends only on the step's path, so that links stay valid while the run
    continues."""
    name = quote(path, safe="", errors="replace")
    if len(name) > _LONGEST:
        name = hashlib.sha256(path.encode(errors="replace")).hexdigest()[:16]
    return f"step-{name}"


def _rank_anchor(path: str, rank: int) -> str:
    """Return the id of a rank of a step. The id of a step contains no slash."""
    return f"{_step_anchor(path)}/{rank}"


class _Share(NamedTuple):
    """The steps in one state. percent: of all steps"""

    status: Status
    amount: int
    percent: float


def _progress(steps: Iterable[StepRecord]) -> list[_Share]:
    """Return the states that occur, those of ended steps first."""
    amounts = Counter(step.status for step in steps)
    shares = {status: round(100 * amounts[status] / amounts.total(), 2) for status in _ORDER if amounts[status]}
    return [_Share(status, amounts[status], percent) for status, percent in shares.items()]


@dataclass(frozen=True)
class Links:
    """Links of the page of a run.

    folder: the run's folder, which contains the page; "" for a page without a folder
    """

    folder: str

    def link(self, path: str) -> str:
        """Return the relative link to a file or folder of this run or a run beside it; "" for any other text.

        Other paths on this machine have no link, because it would be broken in a copy of the page.
        """
        relative = self._relative(path)
        return quote(relative, errors="replace") if relative else ""

    def shown(self, path: str) -> str:
        """Return a path as shown on the page: relative if it has a link."""
        return self._relative(path) or path

    def page_of(self, run: str) -> str:
        """Return the relative link to the page of a run beside this one."""
        return f"../{quote(run, safe='', errors='replace')}/run.html" if self.folder else ""

    def _relative(self, path: str) -> str:
        if not self.folder or not os.path.isabs(path) or "\0" in path:
            return ""
        path, own, runs = os.path.normpath(path), f"{self.folder}/", f"{os.path.dirname(self.folder)}/"
        if not path.startswith(runs) or runs == "//":
            return ""
        # `os.path.relpath` would take a fifth of the time of a page.
        return path.removeprefix(own) if path.startswith(own) else f"../{path.removeprefix(runs)}"
