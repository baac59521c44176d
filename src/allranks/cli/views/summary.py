"""The result of a run in a few lines: the verdict, outputs, metrics, the page, and the next command."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from allranks.cli.views import STYLES
from allranks.history.curves import best
from allranks.history.formatting import (
    SYMBOLS,
    cause,
    elapsed,
    models_of,
    outputs_of,
    reported_results,
    usage_of_ranks,
    what_to_do,
    without_reason,
)
from allranks.history.nested import count_steps, in_every_iteration, nested, walk
from allranks.history.records import Point, RunRecord, Status, StepRecord, Verdict
from allranks.sdk.paths import shown
from allranks.text import LONG, count, duration, number, plain

_TAIL = 20
_VERDICTS = 5
_STEPS = 6
_CONSEQUENCES = 3
_SHORTEST = 1.0
"""Minimum duration, in seconds, of a step whose resource usage is listed."""


def summary(run: RunRecord) -> Text:
    """Return the result of a run as text. Print it with ``soft_wrap=True``, so that paths are not broken."""
    facts = (_heading(run), _verdicts(run), *_results(run), _metrics(run), _usage_lines(run.steps), _next(run))
    blocks = [block for block in facts if block]
    return Text("\n\n").join(Text("\n").join(block) for block in blocks)


def _heading(run: RunRecord) -> list[Text]:
    words = {
        Status.COMPLETED: "completed in",
        Status.FAILED: "failed after",
        Status.CANCELED: "was canceled after",
        Status.INTERRUPTED: "was interrupted: the engine died",
    }
    outcome = words.get(run.status, f"is {run.status}")
    time = elapsed(run, run.ended) if run.ended is not None else None
    title = f"{SYMBOLS[run.status]} {plain(run.display_name or run.name)} {outcome}"
    title += "" if time is None else f" {duration(time)}"
    heading = Text.assemble((title, STYLES[run.status]))
    if reused := sum(step.reused_from is not None for step in run.steps):
        heading.append(f"  {reused} of {count_steps(run.steps)} steps reused", style="cyan")
    return [heading]


def _verdicts(run: RunRecord) -> list[Text]:
    verdicts = _of_steps(run)
    lines = [line for verdict in verdicts[:_VERDICTS] for line in (Text(), *_verdict(run, verdict))]
    if (more := len(verdicts) - _VERDICTS) > 0:
        lines += [Text(), Text(f"  and {count(more, 'more failed step')}: allranks show {_quoted(run.id)}")]
    return lines[1:]


def _of_steps(run: RunRecord) -> list[Verdict]:
    """Return the verdicts in the run's order, except those of groups that contain a failed step."""
    verdicts: dict[str, Verdict] = {}
    groups: set[str] = set()
    # In reverse order, a group comes after its nodes.
    for node in reversed(list(walk(nested(run.steps)))):
        # A sweep does not fail because a trial has failed.
        is_sweep = node.record.kind == "sweep" and node.record.verdict is not None
        if not is_sweep and any(child.path in verdicts or child.path in groups for child in node.children):
            groups.add(node.path)
        elif node.record.verdict is not None:
            verdicts[node.path] = node.record.verdict
    return [verdicts[step.name] for step in run.steps if step.name in verdicts]


def _verdict(run: RunRecord, verdict: Verdict) -> list[Text]:
    lines = _explanation(verdict, _CONSEQUENCES)
    for fault in run.faults:
        if fault.node == verdict.step and fault.attempt == run.step(fault.node).attempt:
            lines.append(Text(f"  injected by --fault {fault.fault}"))
    if tail := without_reason(verdict.tail, verdict) if len(verdict.reason.strip()) > LONG else verdict.tail:
        lines.append(Text(f"  the last lines of {plain(shown(verdict.log))}", style="bright_black"))
        lines += _quotation(tail[-_TAIL:])
    rank = "" if verdict.rank is None else f" --rank {verdict.rank}"
    command = f"allranks logs {_quoted(run.id)} {_quoted(verdict.step)}{rank}"
    return [*lines, Text.assemble(("  the whole log  ", "bright_black"), (command, "cyan"))]


def explained(verdict: Verdict) -> list[Text]:
    """Return the whole verdict as lines: the cause, its traceback, all consequences, the advice, and the log."""
    lines = _explanation(verdict, len(verdict.consequences), whole=True)
    lines += _quotation(without_reason(verdict.traceback.splitlines() or verdict.tail, verdict))
    log = Text.assemble(("  the log  ", "bright_black"), (plain(shown(verdict.log)), "cyan"))
    return [*lines, log] if verdict.log else lines


def _quotation(lines: Sequence[str]) -> list[Text]:
    return [Text.assemble(("  │ ", "red"), plain(line)) for line in lines]


def _explanation(verdict: Verdict, most: int, *, whole: bool = False) -> list[Text]:
    """Return the lines of the cause, at most `most` consequences, and the advice. whole: as for `cause`"""
    headline = cause(verdict, whole=whole)
    lines = [Text.assemble("  ", (plain(verdict.step), "bold"), ": ", plain(headline) or "failed")]
    if verdict.reason not in headline:
        lines.append(Text(f"  {_one_line(verdict.reason)}", style="red"))
    for text in verdict.consequences[:most]:
        lines.append(Text(f"  then {_one_line(text)}", style="bright_black"))
    if advice := what_to_do(verdict):
        lines.append(Text(f"  {_one_line(advice)}", style="yellow"))
    return lines


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())


def _results(run: RunRecord) -> list[list[Text]]:
    tables = {"outputs": outputs_of(run), "registered models": models_of(run), "results": reported_results(run)}
    titles = {title: Text(f"  {title}", style="bright_black") for title in tables}
    return [[titles[title], *_rows(rows, "    ", "")] for title, rows in tables.items() if rows]


def _rows(rows: Mapping[str, str], indent: str, style: str) -> list[Text]:
    rows = {plain(name): plain(shown(value) if os.path.isabs(value) else value) for name, value in rows.items()}
    width = max(map(len, rows), default=0)
    return [Text.assemble((f"{indent}{name:<{width}}  ", style), (value, "cyan")) for name, value in rows.items()]


def _metrics(run: RunRecord) -> list[Text]:
    rows = _metric_rows(run)
    steps = max((len(plain(row.step)) for row in rows), default=0)
    names = max((len(plain(row.name)) for row in rows), default=0)
    lines = [Text("  metrics", style="bright_black")] if rows else []
    for before, row in zip(("", *(row.step for row in rows)), rows, strict=False):
        heading = f"    {plain(row.step) if row.step != before else '':<{steps}}  {plain(row.name):<{names}}  "
        lines.append(Text.assemble(heading, (f"{number(row.last):>9}", "bold"), (row.best, "bright_black")))
    return lines


class _MetricRow(NamedTuple):
    """A metric of a step, or of a step in every iteration of its loop. best: the best value and its iteration."""

    step: str
    name: str
    last: float
    best: str


def _metric_rows(run: RunRecord) -> list[_MetricRow]:
    curves: dict[tuple[str, str], list[tuple[str, list[Point]]]] = {}
    for step in run.steps:
        for name, points in step.metrics.items():
            if points:
                curves.setdefault((in_every_iteration(step.name), name), []).append((step.name, points))
    rows = []
    for (path, name), iterations in curves.items():
        latest, points = iterations[-1]
        shown = latest if len(iterations) == 1 else path
        rows.append(_MetricRow(shown, name, points[-1].value, _best(name, iterations)))
    # Metrics of one step are grouped, even if another iteration ran in between.
    order = {step: place for place, step in enumerate(dict.fromkeys(row.step for row in rows))}
    return sorted(rows, key=lambda row: order[row.step])


def _best(name: str, iterations: list[tuple[str, list[Point]]]) -> str:
    """Return the best value of a metric and its training step, or its iteration if there are several."""
    tops = [(step, point) for step, points in iterations if (point := best(name, points)) is not None]
    top = best(name, [point for _, point in tops])
    if len(iterations) == 1:
        return f"  best {number(top.value)} at step {top.step:,}" if top and len(iterations[0][1]) > 1 else ""
    return next((f"  best {number(point.value)} in {plain(step)}" for step, point in tops if point is top), "")


def _next(run: RunRecord) -> list[Text]:
    rows = {"page": run.page} if run.page else {}
    if run.submitted:
        rows["studio"] = run.submitted.studio
    elif run.status in (Status.FAILED, Status.CANCELED, Status.INTERRUPTED):
        rows["resume with the same code"] = f"allranks resume {_quoted(run.id)}"
        if run.target:
            rows["resume with the latest code"] = f"allranks resume {_quoted(run.id)} --latest-code"
    return _rows(rows, "  ", "bright_black")


def _quoted(name: str) -> str:
    return shlex.quote(plain(name))


def _usage_lines(steps: Sequence[StepRecord]) -> list[Text]:
    """Return a heading and the resource usage of each step, or of those with the most CPU time if there are many."""
    long = [step for step in steps if not step.reused_from and (step.ended or 0.0) - (step.started or 0.0) >= _SHORTEST]
    rows = [step for step in long if step.started and any(rank.cpu_seconds is not None for rank in step.ranks)]
    seconds = {step.name: sum(rank.cpu_seconds or 0.0 for rank in step.ranks) for step in rows}
    chosen = sorted(rows, key=lambda step: -seconds[step.name])[:_STEPS]
    names = {step.name for step in chosen}
    lines = []
    width = max((len(plain(step.name)) for step in chosen), default=0)
    for step in (step for step in rows if step.name in names):
        ranks = f"  {count(len(step.ranks), 'rank')}" if len(step.ranks) > 1 else ""
        line = Text.assemble(f"    {plain(step.name):<{width}}")
        for name, value in usage_of_ranks(step, step.ended).items():
            line.append(f"  {name} ", style="bright_black").append(value)
        lines.append(line.append(ranks, style="bright_black"))
        if step.straggler:
            lines.append(Text(f"    {'':<{width}}  {plain(step.straggler)}", style="yellow"))
    if len(rows) > len(chosen):
        lines.append(Text(f"    ... {count(len(rows) - len(chosen), 'step')} more", style="bright_black"))
    return [Text("  resources per rank: mean CPU, peak memory", style="bright_black"), *lines] if lines else []
