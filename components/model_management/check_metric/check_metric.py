"""Compare a metric of an evaluation with a target and with the evaluation's baseline."""

from allranks.runtime import arguments
from allranks_steps.models.metric import Metric, baseline_value, metric_value, read_metrics
from allranks_steps.models.results import report, write_control_outputs


def main() -> None:
    args = arguments()
    metric = Metric(args.metric, args.goal)
    metrics = read_metrics(args.metrics)
    value = metric_value(metrics, args.metric, args.metrics)
    baseline = baseline_value(metrics, args.metric, args.metrics)
    missed = not metric.reaches(value, args.target)
    improved = baseline is None or metric.exceeds(value, baseline, args.margin)
    write_control_outputs(
        {"value": (args.value, value), "missed": (args.missed, missed), "improved": (args.improved, improved)}
    )
    reached = "misses" if missed else "reaches"
    compared = "no baseline" if baseline is None else f"{'better' if improved else 'not better'} than {baseline:.4f}"
    report(f"{args.metric} {value:.4f} {reached} the target of {args.target:.4f}, {compared}")


if __name__ == "__main__":
    main()
