"""Decide whether a challenger replaces the champion."""

from __future__ import annotations

from dataclasses import dataclass, field

from allranks_steps.models.metric import Metric


@dataclass(frozen=True)
class Rules:
    """What a challenger must reach.

    margin:    by how much it must be better than the champion; it must be better in any case
    threshold: the least good value; None for no bound
    """

    metric: Metric = field(default_factory=Metric)
    margin: float = 0.0
    threshold: float | None = None


@dataclass(frozen=True)
class Decision:
    """Whether the challenger is promoted, and why or why not."""

    promoted: bool
    reason: str


def decide(challenger: float, champion: float | None, rules: Rules, *, new: int | None = None) -> Decision:
    """Decide by the values of the metric.

    champion: None if there is none
    new:      number of samples in the challenger's training but not the champion's; None if it is unknown
    """
    metric = rules.metric
    value = f"{metric.name} {challenger:.4f}"
    if new == 0:
        return Decision(False, "there is no new data, so nothing was trained")
    if rules.threshold is not None and not metric.reaches(challenger, rules.threshold):
        missed = "below the minimum" if metric.goal == "maximize" else "above the maximum"
        return Decision(False, f"{value} is {missed} of {rules.threshold:.4f}")
    if champion is None:
        return Decision(True, f"{value}, and there is no champion yet")
    compared = f"{value} against the champion's {champion:.4f}"
    if not metric.exceeds(challenger, champion):
        return Decision(False, f"{compared} is no better")
    if not metric.exceeds(challenger, champion, rules.margin):
        return Decision(False, f"{compared} is not better by {rules.margin:.4f}")
    return Decision(True, f"{compared} is better")
