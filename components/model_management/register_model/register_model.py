"""Register a model if its metric reaches a threshold."""

from argparse import Namespace

from allranks.runtime import arguments
from allranks_steps.json_files import write_json
from allranks_steps.models.metric import Metric, metric_value, read_metrics
from allranks_steps.models.mlmodel import read_mlmodel
from allranks_steps.models.registry import register, require_address
from allranks_steps.models.results import report


def register_if_good(args: Namespace) -> str:
    """Register the model if its metric reaches the threshold, write registration.json, and return the result as a line.

    Raise InputError if there is no registry or it refuses, there is no model, or the metric is missing.
    """
    require_address()
    read_mlmodel(args.model)
    scores = read_metrics(args.metrics)
    metric = Metric(args.metric, args.goal)
    value = metric_value(scores, metric.name, args.metrics)
    version = None
    if args.threshold is None or metric.reaches(value, args.threshold):
        # Tags are strings whose names have no colon (mlflow#8008).
        tags = {metric.name: f"{value:.4f}", "data": str(scores.get("source", ""))}
        version = register(args.model, args.name, tags)
        result = f"registered as {args.name}, version {version}: {metric.name} {value:.4f}"
    else:
        result = f"not registered as {args.name}: {metric.miss(value, args.threshold)}"
    content = {"name": args.name, "version": version, "metric": metric.name, "value": value, "goal": metric.goal}
    write_json(args.registration / "registration.json", content | {"threshold": args.threshold})
    return result


if __name__ == "__main__":
    report(register_if_good(arguments()))
