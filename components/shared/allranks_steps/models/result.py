"""Report the result of a step as one line, which stands beside the metrics of its run.

Here it is the file ./outputs/result.txt, an artifact of the job. On Azure ML it is also the tag allranks.result of the
job, which can be read without a download. A script that uses MLflow anyway sets only the tag, here and there.
"""

from __future__ import annotations

import os
from pathlib import Path

FILE = Path("outputs/result.txt")
TAG = "allranks.result"


def report(line: str) -> None:
    """Print the line, and report it as the step's result."""
    print(line)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(f"{line}\n", encoding="utf-8")
    if os.environ.get("MLFLOW_TRACKING_URI", "").startswith("azureml:"):
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient

        try:
            MlflowClient().set_tag(os.environ["AZUREML_RUN_ID"], TAG, line)
        except (KeyError, MlflowException) as error:
            print(f"the tag {TAG} was not set: {error}")
