"""register_model: put an evaluated model into the MLflow model registry."""

# No `from __future__ import annotations` here: mldesigner needs the annotations as objects.

import sys
from pathlib import Path

from mldesigner import Input, Output, command_component

# A job's snapshot contains only this folder. The environment is read when a pipeline is written, not in a job.
ENVIRONMENT = Path(__file__).parent / "../../../environments/cpu/environment.yaml"


@command_component(
    name="allranks_register_model",
    version="0.1.0",
    display_name="Register model",
    description=(
        "Registers an MLflow model under a name, as a new version, if a metric of its evaluation reaches a threshold. "
        "The version carries the metric, the data and the run as tags. For example: register_model(model="
        'train.outputs.model, metrics=evaluate.outputs.metrics, name="my-model", metric="loss", goal="minimize", '
        "threshold=2.5)."
    ),
    tags={"task": "model-management", "launch": "single process"},
    # It changes the registry, so an earlier result must not be reused.
    is_deterministic=False,
    environment=ENVIRONMENT if ENVIRONMENT.exists() else None,
)
def register_model(
    model: Input(
        type="mlflow_model",
        mode="ro_mount",
        description="The model, in any of MLflow's formats: a folder with a file MLmodel.",
    ),
    metrics: Input(
        type="uri_folder",
        mode="ro_mount",
        description="The output `metrics` of an evaluation: metrics.json, an object of numbers by name.",
    ),
    registration: Output(
        type="uri_folder",
        mode="rw_mount",
        description="registration.json: the name, the version (null if not registered), the metric and its value.",
    ),
    name: Input(type="string", description="The name under which the model is registered."),
    metric: Input(type="string", description="The metric in metrics.json that decides.") = "accuracy",
    goal: Input(
        type="string", enum=["maximize", "minimize"], description="Whether a higher or a lower value is better."
    ) = "maximize",
    threshold: Input(
        type="number",
        min=-1e9,
        max=1e9,
        optional=True,
        description="The least good value with which a model is registered. Without it, every value is good enough.",
    ) = None,
):
    # Imported here: only a job has this folder on its path, and only a job needs MLflow.
    from registration import register_if_good

    from allranks_steps.models.metric import BadMetrics, Metric
    from allranks_steps.models.mlmodel import BadModel
    from allranks_steps.models.registry import RegistryError
    from allranks_steps.models.result import report

    decisive = Metric(metric, goal)
    try:
        registered = register_if_good(Path(model), Path(metrics), name, decisive, threshold, Path(registration))
    except (BadMetrics, BadModel, RegistryError) as error:
        print(f"register_model: {error}", file=sys.stderr)
        sys.exit(2)
    report(str(registered))
