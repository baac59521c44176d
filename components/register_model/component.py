"""register_model: put an evaluated model into the MLflow model registry."""

# No `from __future__ import annotations` here: mldesigner needs the annotations as objects.

import sys
from pathlib import Path

from mldesigner import Input, Output, command_component

# A job's snapshot contains only this folder. The environment is read when a pipeline is written, not in a job.
ENVIRONMENT = Path(__file__).parent / "../../environments/cpu/environment.yaml"


@command_component(
    name="register_model",
    version="0.1.0",
    display_name="Register model",
    description=(
        "Registers an MLflow model under a name, as a new version, if its accuracy is high enough. "
        "The version carries the accuracy, the data and the run as tags."
    ),
    tags={"task": "model-management", "launch": "single process"},
    # It changes the registry, so an earlier result must not be reused.
    is_deterministic=False,
    environment=ENVIRONMENT if ENVIRONMENT.exists() else None,
)
def register_model(
    model: Input(
        type="mlflow_model", description="The model, in any of MLflow's formats: a folder with a file MLmodel."
    ),
    metrics: Input(
        type="uri_folder", description="metrics.json of an evaluating step: a JSON object with the number accuracy."
    ),
    registration: Output(
        type="uri_folder",
        description="registration.json: the name, the version (null if not registered), the accuracy.",
    ),
    name: Input(type="string", description="The name under which the model is registered.") = "image-classifier",
    minimum_accuracy: Input(
        type="number", min=0.0, max=1.0, description="The accuracy below which the model is not registered."
    ) = 0.0,
):
    # Imported here: only a job has this folder on its path, and only a job needs MLflow.
    from registration import CannotRegister, register
    from result import report

    try:
        registered = register(Path(model), Path(metrics), name, minimum_accuracy, Path(registration))
    except CannotRegister as error:
        print(f"register_model: {error}", file=sys.stderr)
        sys.exit(2)
    report(str(registered))
