"""Compare a metric of an evaluation with a target and with the evaluation's baseline."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.errors import InputError, Problem
from allranks.runtime import arguments
from allranks_steps.models import control_outputs
from allranks_steps.models.metric import BadMetrics, Metric, baseline_of, read_metrics, value_of
from allranks_steps.models.result import report


@dataclass(frozen=True)
class Answers:
    """value: of the metric; missed: whether it misses the target; improved: whether it is better than the baseline"""

    value: float
    missed: bool
    improved: bool


def answers(metric: Metric, value: float, baseline: float | None, target: float, margin: float) -> Answers:
    """Compare a value with the target and the baseline. Without a baseline (None), every value is an improvement."""
    improved = baseline is None or metric.exceeds(value, baseline, margin)
    return Answers(value, not metric.reaches(value, target), improved)


def main() -> None:
    args = arguments()
    try:
        metrics = read_metrics(args.metrics)
        value = value_of(metrics, args.metric, args.metrics)
        baseline = baseline_of(metrics, args.metric, args.metrics)
    except BadMetrics as error:
        raise InputError(Problem("check_metric", str(error))) from None
    result = answers(Metric(args.metric, args.goal), value, baseline, args.target, args.margin)
    control_outputs.write(
        {
            "value": (args.value, result.value),
            "missed": (args.missed, result.missed),
            "improved": (args.improved, result.improved),
        }
    )
    reached = "misses" if result.missed else "reaches"
    compared = (
        "no baseline" if baseline is None else f"{'better' if result.improved else 'not better'} than {baseline:.4f}"
    )
    report(f"{args.metric} {value:.4f} {reached} the target of {args.target:.4f}, {compared}")


if __name__ == "__main__":
    main()
