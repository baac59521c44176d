"""Compare a metric of an evaluation with a target and with the evaluation's baseline."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import control_outputs
from result import report

ROUNDING = 1e-9
"""Tolerance for rounding errors in differences of fractions."""


class BadMetrics(Exception):
    """The metrics cannot be read. The message says why and what to do."""


@dataclass(frozen=True)
class Answers:
    """value: of the metric; below: whether it is below the target; improved: whether it is better than the baseline"""

    value: float
    below: bool
    improved: bool


def answers(value: float, baseline: float | None, target: float, margin: float) -> Answers:
    """Compare a value with the target and the baseline. Without a baseline (None), every value is an improvement."""
    gain = None if baseline is None else value - baseline
    improved = gain is None or (gain > ROUNDING and gain >= margin - ROUNDING)
    return Answers(value, value < target - ROUNDING, improved)


def read(folder: Path, metric: str) -> tuple[float, float | None]:
    """Return the metric's value in metrics.json and the baseline's, None if there is no baseline.

    Raise BadMetrics if there is no such value.
    """
    file = folder / "metrics.json"
    try:
        metrics = json.loads(file.read_text(encoding="utf-8"))
        baseline = metrics.get("baseline")
        return float(metrics[metric]), None if baseline is None else float(baseline[metric])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        fix = "Give the output `metrics` of an evaluation."
        raise BadMetrics(f"{file} has no {metric} ({error!r}). {fix}") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--target", type=float, default=1.0)
    parser.add_argument("--margin", type=float, default=0.0)
    for output in ("value", "below", "improved"):
        parser.add_argument(f"--{output}", type=Path, required=True)
    args = parser.parse_args()
    try:
        value, baseline = read(args.metrics, args.metric)
    except BadMetrics as error:
        print(f"check_metric: {error}", file=sys.stderr)
        sys.exit(2)
    result = answers(value, baseline, args.target, args.margin)
    control_outputs.write(
        {
            "value": (args.value, result.value),
            "below": (args.below, result.below),
            "improved": (args.improved, result.improved),
        }
    )
    reached = "below" if result.below else "reaches"
    compared = (
        "no baseline" if baseline is None else f"{'better' if result.improved else 'not better'} than {baseline:.4f}"
    )
    report(f"{args.metric} {value:.4f} {reached} the target of {args.target:.4f}, {compared}")


if __name__ == "__main__":
    main()
