"""How times, numbers, layouts and states are written for people: the same on the terminal and on a run's page."""

from __future__ import annotations

import math
import re
import time
from types import MappingProxyType

from allranks.runs.nested import Node, steps_of
from allranks.runs.records import RunRecord, Status, StepRecord, Verdict

NOTHING = "–"
"""Stands where there is no value."""

SYMBOLS = MappingProxyType(
    {
        Status.NOT_STARTED: "○",
        Status.PREPARING: "◌",
        Status.RUNNING: "●",
        Status.COMPLETED: "✓",
        Status.FAILED: "✗",
        Status.CANCELED: "■",
        Status.INTERRUPTED: "!",
        Status.SKIPPED: "⊘",
    }
)
"""One glyph a state, told apart by its shape: colour only repeats what it says."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LONE = re.compile("[\ud800-\udfff]")


def duration(seconds: float | None, *, whole: bool = False) -> str:
    """``3.2 s``, ``42 s``, ``2 min 03 s``, ``1 h 04 min``, ``2 d 3 h``. whole: no fraction, as on a clock."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    seconds = max(seconds, 0.0)
    if seconds < 9.95 and not whole:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    full = math.floor(seconds) if whole else round(seconds)
    if full < 60:
        return f"{full} s"
    if full < 3600:
        return f"{full // 60} min {full % 60:02d} s"
    if full < 86400:
        return f"{full // 3600} h {full % 3600 // 60:02d} min"
    return f"{full // 86400} d {full % 86400 // 3600} h"


def number(value: float) -> str:
    """A metric's value, to four significant digits where it is not a whole number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    if size >= 1e6 or size < 1e-4:
        return f"{value:.3g}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def count(amount: int, noun: str) -> str:
    """``1 step``, ``3 steps``."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def clock(moment: float) -> str:
    """``12:03:04``, in this machine's time zone."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def when(moment: float | None) -> str:
    """``2026-07-04 12:03:04``, in this machine's time zone. No moment, or the epoch's very start: a dash."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) if moment else NOTHING


def elapsed(record: RunRecord | StepRecord | Node, now: float) -> float | None:
    """Return the seconds that a run, a step or a group took so far. None before it starts, and for a reused result."""
    started = record.created if isinstance(record, RunRecord) else record.started
    if not started or (isinstance(record, StepRecord) and record.reused_from):
        return None
    if record.ended is None and record.status.ended:
        return None
    return max((record.ended if record.ended is not None else now) - started, 0.0)


def layout(distribution: str, instance_count: int, process_count_per_instance: int) -> str:
    """``pytorch 2 x 2`` (instances x processes an instance); ``1 process`` where nothing is distributed."""
    if distribution in ("", "none"):
        return "1 process" if instance_count == 1 else f"{instance_count} x 1"
    return f"{distribution} {instance_count} x {process_count_per_instance}"


def step_layout(step: StepRecord) -> str:
    """The layout of a step of a run."""
    return layout(step.distribution, step.instance_count, step.process_count_per_instance)


def node_layout(node: Node) -> str:
    """The layout of a step; of a group, how much it holds."""
    if node.children and all(child.is_iteration for child in node.children):
        return count(len(node.children), "iteration")
    if node.children:
        return count(len(steps_of(node)), "step")
    if node.record is None or node.record.kind != "command":
        return ""
    return step_layout(node.record)


def cause(verdict: Verdict) -> str:
    """Who failed and how it ended: ``rank 3 on instance 1 ended by SIGKILL``. Empty where neither is known."""
    who = "" if verdict.rank is None else f"rank {verdict.rank}"
    if who and verdict.instance_rank is not None:
        who += f" on instance {verdict.instance_rank}"
    if verdict.signal:
        return f"{who} ended by {verdict.signal}".lstrip()
    if verdict.exit_code is not None:
        return f"{who} ended with exit code {verdict.exit_code}".lstrip()
    return who


def reason(verdict: Verdict) -> str:
    """Why it failed, where that is more than `cause` says already."""
    return "" if verdict.reason and cause(verdict).endswith(verdict.reason) else verdict.reason


def plain(text: str) -> str:
    """The text without what would steer a terminal or break a page: escape sequences, controls, reordering marks.

    Of a line that was rewritten in place, as progress bars do with a carriage return, the last state is left.
    """
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _LONE.sub("\ufffd", _CONTROLS.sub("", text))
