"""What came of a run, in a few lines: the verdict, outputs, metrics, the page, and what to do next."""

from __future__ import annotations

import shlex

from rich.text import Text

from allranks.cli.views.states import STYLES
from allranks.runs.curves import best
from allranks.runs.formatting import SYMBOLS, cause, duration, elapsed, number, plain, reason
from allranks.runs.records import Point, RunRecord, Status, Verdict

_TAIL = 20


def summary(run: RunRecord) -> Text:
    """The run's end as text, a line a fact; print it with ``soft_wrap=True`` so that paths stay whole."""
    blocks = [block for block in (_heading(run), _verdicts(run), _outputs(run), _metrics(run), _next(run)) if block]
    return Text("\n\n").join(Text("\n").join(block) for block in blocks)


def _heading(run: RunRecord) -> list[Text]:
    words = {
        Status.COMPLETED: "completed in",
        Status.FAILED: "failed after",
        Status.CANCELED: "was canceled after",
        Status.INTERRUPTED: "was interrupted: the engine died",
    }
    said = words.get(run.status, f"is {run.status}")
    time = elapsed(run, run.ended) if run.ended is not None else None
    style = STYLES[run.status]
    reused = sum(step.reused_from is not None for step in run.steps)
    heading = Text.assemble((f"{SYMBOLS[run.status]} {plain(run.display_name or run.name)} {said}", style))
    if time is not None:
        heading.append(f" {duration(time)}", style=style)
    if reused:
        heading.append(f"  {reused} of {len(run.steps)} steps reused", style="cyan")
    return [heading]


def _verdicts(run: RunRecord) -> list[Text]:
    lines: list[Text] = []
    for verdict in (step.verdict for step in run.steps if step.verdict):
        lines += [Text(), *_verdict(run, verdict)] if lines else _verdict(run, verdict)
    return lines


def _verdict(run: RunRecord, verdict: Verdict) -> list[Text]:
    lines = [
        Text.assemble("  ", (plain(verdict.step), "bold"), ": ", cause(verdict) or "failed"),
    ]
    if why := reason(verdict):
        lines.append(Text(f"  {_one_line(why)}", style="red"))
    if verdict.tail:
        lines.append(Text(f"  the last lines of {plain(verdict.log)}", style="bright_black"))
        lines += [Text.assemble(("  │ ", "red"), plain(line)) for line in verdict.tail[-_TAIL:]]
    rank = "" if verdict.rank is None else f" --rank {verdict.rank}"
    command = f"allranks logs {_quoted(run.id)} {_quoted(verdict.step)}{rank}"
    return [*lines, Text.assemble(("  the whole log  ", "bright_black"), (command, "cyan"))]


def _outputs(run: RunRecord) -> list[Text]:
    return _table("outputs", [(plain(name), plain(path)) for name, path in run.outputs.items()])


def _metrics(run: RunRecord) -> list[Text]:
    entries = [(step.name, name, points) for step in run.steps for name, points in step.metrics.items() if points]
    if not entries:
        return []
    steps = max(len(plain(step)) for step, _, _ in entries)
    names = max(len(plain(name)) for _, name, _ in entries)
    lines = [Text("  metrics", style="bright_black")]
    before = ""
    for step, name, points in entries:
        shown = plain(step) if step != before else ""
        before = step
        last = number(points[-1].value)
        lines.append(
            Text.assemble(
                f"    {shown:<{steps}}  {plain(name):<{names}}  ",
                (f"{last:>9}", "bold"),
                (_best(name, points), "bright_black"),
            )
        )
    return lines


def _best(name: str, points: list[Point]) -> str:
    found = best(name, points) if len(points) > 1 else None
    return f"  best {number(found.value)} at step {found.step:,}" if found else ""


def _next(run: RunRecord) -> list[Text]:
    rows = {"page": plain(run.page)} if run.page else {}
    if run.submitted:
        rows["studio"] = plain(run.submitted.studio)
    elif run.status in (Status.FAILED, Status.CANCELED, Status.INTERRUPTED):
        rows["go on from here"] = f"allranks resume {_quoted(run.id)}"
    width = max(map(len, rows), default=0)
    return [Text.assemble((f"  {name:<{width}}  ", "bright_black"), (value, "cyan")) for name, value in rows.items()]


def _table(title: str, rows: list[tuple[str, str]]) -> list[Text]:
    if not rows:
        return []
    width = max(len(name) for name, _ in rows)
    return [
        Text(f"  {title}", style="bright_black"),
        *(Text.assemble(f"    {name:<{width}}  ", (value, "cyan")) for name, value in rows),
    ]


def _one_line(text: str) -> str:
    return " ".join(plain(text).split())


def _quoted(name: str) -> str:
    return shlex.quote(plain(name))
