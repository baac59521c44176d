"""The process that calls MLflow. It reads one JSON request per line from stdin, and writes one JSON answer per line to
stdout, in the same order and with the number of the request."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from allranks.local.instances.kernel import die_with_parent


def main(engine: str, tracking_uri: str, artifacts: str) -> None:
    """Answer requests until stdin ends.

    engine:    the process id of the engine
    artifacts: the folder for the artifacts of new experiments
    """
    die_with_parent()
    if os.getppid() != int(engine):
        return  # the engine ended before `die_with_parent`
    os.umask(0o077)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with answers
    logging.disable(logging.WARNING)
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri)
    for line in sys.stdin:
        request = json.loads(line)
        number = request.pop("number")
        try:
            answer = HANDLERS[request.pop("request")](client, artifacts, **request)
        except Exception as error:  # no failure of MLflow may end the run; the engine adds a note
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"number": number, **answer}), file=answers)


def create(client: Any, artifacts: str, *, experiment: str, name: str, tags: dict[str, str]) -> dict[str, Any]:
    """Create an MLflow run, and its experiment if it does not exist."""
    existing = client.get_experiment_by_name(experiment)
    if existing is None:
        location = "file://" + os.path.join(artifacts, experiment.replace("/", "_"))
        experiment_id = client.create_experiment(experiment, artifact_location=location)
    else:
        experiment_id = existing.experiment_id
    return {"run_id": client.create_run(experiment_id, run_name=name, tags=tags).info.run_id}


def end(client: Any, artifacts: str, *, run_id: str, status: str) -> dict[str, Any]:  # noqa: ARG001 - all handlers have the same signature
    """End an MLflow run. Return its curves: by metric, points [step, value, seconds since the epoch]."""
    client.set_terminated(run_id, status)
    metrics = client.get_run(run_id).data.metrics
    return {
        "metrics": {
            name: [
                [point.step, point.value, point.timestamp / 1000] for point in client.get_metric_history(run_id, name)
            ]
            for name in metrics
        }
    }


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {"create": create, "end": end}

if __name__ == "__main__":
    main(*sys.argv[1:])
