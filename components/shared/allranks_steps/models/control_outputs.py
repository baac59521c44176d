"""Write control outputs: values that loops and conditions of a pipeline read.

A primitive output is a file with the value as text. Azure ML's pipeline also reads a control output from the run's
properties, where mldesigner writes it (`_write_properties_to_run_history` of mldesigner 0.1.0b23). A component that is
not written with mldesigner must do both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROPERTY = "azureml.pipeline.control"


def write(values: Mapping[str, tuple[Path, Any]]) -> None:
    """Write control outputs. values: output name -> (file, value)"""
    for file, value in values.values():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(value), encoding="utf-8")
    if os.environ.get("MLFLOW_TRACKING_URI", "").startswith("azureml:"):
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
