"""Write the control outputs of a step, which loops and conditions of a pipeline read, and its result as one line.

Locally, a control output is a file with the value as text, and the line is the file ./outputs/result.txt. Azure ML's
pipeline also reads a control output from the run's properties, where mldesigner writes it
(`_write_properties_to_run_history` of mldesigner 0.1.0b23), and the line is also the tag allranks.result of the
job, which can be read without a download.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROPERTY = "azureml.pipeline.control"
RESULT = Path("outputs/result.txt")
TAG = "allranks.result"


def write_control_outputs(values: Mapping[str, tuple[Path, Any]]) -> None:
    """Write control outputs. values: output name -> (file, value)"""
    for file, value in values.values():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(value), encoding="utf-8")
    if _on_azure():
        send({name: value for name, (_, value) in values.items()})


def send(values: Mapping[str, Any]) -> None:
    """Write the values into the properties of this run in Azure ML's run history."""
    from mlflow.tracking import MlflowClient
    from mlflow.utils.rest_utils import http_request

    client = MlflowClient()
    run = client.get_run(os.environ["MLFLOW_RUN_ID"]).info
    credentials = client._tracking_client.store.get_host_creds()
    # The addresses of a workspace's tracking server and of its run history differ only in this part.
    host = credentials.host.replace("mlflow/v2.0", "history/v1.0").replace("mlflow/v1.0", "history/v1.0")
    credentials.host = host
    response = http_request(
        host_creds=credentials,
        endpoint=f"/experimentids/{run.experiment_id}/runs/{run.run_id}",
        method="PATCH",
        json={"runId": run.run_id, "properties": {PROPERTY: json.dumps(values)}},
    )
    response.raise_for_status()


def report(line: str) -> None:
    """Print the line, and report it as the step's result."""
    print(line)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(f"{line}\n", encoding="utf-8")
    if _on_azure():
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient

        try:
            MlflowClient().set_tag(os.environ["AZUREML_RUN_ID"], TAG, line)
        except (KeyError, MlflowException) as error:
            print(f"the tag {TAG} was not set: {error}")


def _on_azure() -> bool:
    return os.environ.get("MLFLOW_TRACKING_URI", "").startswith("azureml:")
