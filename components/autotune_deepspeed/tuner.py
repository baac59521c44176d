"""DeepSpeed's autotuner, in a process of its own: `python tuner.py SCRIPT ARGUMENT ... --deepspeed_config FILE`."""

from __future__ import annotations

import sys

from deepspeed.autotuning import autotuner
from deepspeed.launcher import runner

if __name__ == "__main__":
    # It would log into a run that MLFLOW_RUN_ID names, and fails where that is not set and MLflow is installed.
    autotuner.has_mlflow = False
    # A hostfile that is not there stands for this instance alone.
    runner.main(["--autotuning", "tune", "--hostfile", "none", *sys.argv[1:]])
