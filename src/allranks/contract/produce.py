"""The producing side of the contract: the processes that the platform starts, and the variables of each."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from allranks.contract.launch import Launch, Process, instance_environment

WORKSPACE: Mapping[str, str] = {
    "AZUREML_ARM_SUBSCRIPTION": str(uuid.UUID(int=0)),
    "AZUREML_ARM_RESOURCEGROUP": "local",
    "AZUREML_ARM_WORKSPACE_NAME": "local",
    # A name that can never resolve (RFC 2606), so that nothing contacts Azure by mistake.
    "AZUREML_SERVICE_ENDPOINT": "https://allranks.invalid",
    # On Azure ML this secret authenticates a process as its run. Here it gives no access.
    "AZUREML_RUN_TOKEN": "local-run-has-no-token",
}
"""The emulated workspace of a local run."""


@dataclass(frozen=True)
class Job:
    """One run of one step.

    root_run_id:    the id of the pipeline's run; the step's own id without a pipeline
    tracking_uri:   the URI of MLflow; None if nothing is logged
    mlflow_run_id:  the MLflow run of the process; None if the process creates one itself
    inputs:         paths and values in the command, by name; likewise outputs
    parameters:     values of the inputs that are not data, by name
    tracking_token: the token for the server at the tracking URI; None if it needs none
    """

    run_id: str
    root_run_id: str
    experiment: str
    tracking_uri: str | None = None
    mlflow_run_id: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    tracking_token: str | None = None


def processes(launch: Launch) -> tuple[Process, ...]:
    """Return the processes that the platform starts, by rank. Under per-node launch, it starts one per instance.

    Raise ValueError if a count is impossible (see `Distribution.problems`).
    """
    return launch.distribution.processes(launch.instance_count)


def environment(launch: Launch, process: Process) -> dict[str, str]:
    """Return the variables of a process that describe its instance and the distribution."""
    return instance_environment(launch, process) | launch.distribution.environment(launch, process)


def job_environment(job: Job, launch: Launch, process: Process) -> dict[str, str]:
    """Return all variables that Azure ML sets for a process: `environment`, and those of every job.

    Sources: azureml-mlflow (AZUREML_*, MLFLOW_*), azureml-examples (AZURE_ML_INPUT_*, AZURE_ML_OUTPUT_*,
    AZUREML_PARAMETER_*), DeepSpeed, which recognizes Azure ML by AZUREML_EXPERIMENT_ID and then fails without
    NCCL_SOCKET_IFNAME, which the GPU images set.
    """
    values = {
        **environment(launch, process),
        **WORKSPACE,
        "AZUREML_ARM_PROJECT_NAME": job.experiment,
        "AZUREML_EXPERIMENT_ID": str(uuid.uuid5(uuid.NAMESPACE_URL, job.experiment)),
        "AZUREML_RUN_ID": job.run_id,
        "AZUREML_ROOT_RUN_ID": job.root_run_id,
        "NCCL_SOCKET_IFNAME": "eth0",
    }
    if job.tracking_uri is not None:
        values |= {"MLFLOW_TRACKING_URI": job.tracking_uri, "MLFLOW_EXPERIMENT_NAME": job.experiment}
        if job.mlflow_run_id is not None:
            values["MLFLOW_RUN_ID"] = job.mlflow_run_id
        if job.tracking_token is not None:
            values["MLFLOW_TRACKING_TOKEN"] = job.tracking_token
    values |= {f"AZURE_ML_INPUT_{name}": value for name, value in job.inputs.items()}
    values |= {f"AZURE_ML_OUTPUT_{name}": value for name, value in job.outputs.items()}
    values |= {f"AZUREML_PARAMETER_{name}": value for name, value in job.parameters.items()}
    return values
