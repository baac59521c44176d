"""Decide whether a challenger replaces the champion."""

from __future__ import annotations

from dataclasses import dataclass

ROUNDING = 1e-9
"""Tolerance for rounding errors in differences of fractions."""


@dataclass(frozen=True)
class Rules:
    """metric: its name; margin: the required improvement over the champion; minimum: the required value"""

    metric: str = "accuracy"
    margin: float = 0.0
    minimum: float = 0.0


@dataclass(frozen=True)
class Decision:
    """Whether the challenger is promoted, and why or why not."""

    promoted: bool
    reason: str


def decide(challenger: float, champion: float | None, new: int, rules: Rules) -> Decision:
    """Decide. champion: None if there is none; new: images in the challenger's training but not the champion's."""
    scored = f"{rules.metric} {challenger:.4f}"
    if not new:
        return Decision(False, "there is no new data, so nothing was trained")
    if challenger < rules.minimum - ROUNDING:
        return Decision(False, f"{scored} is below the minimum of {rules.minimum:.4f}")
    if champion is None:
        return Decision(True, f"{scored}, and there is no champion yet")
    compared = f"{scored} against the champion's {champion:.4f}"
    gain = challenger - champion
    if gain <= ROUNDING:
        return Decision(False, f"{compared} is no better")
    if gain < rules.margin - ROUNDING:
        return Decision(False, f"{compared} is not better by {rules.margin:.4f}")
    return Decision(True, f"{compared} is better")
