"""Run DeepSpeed's autotuner in its own process: `python tuner.py SCRIPT ARGUMENT ... --deepspeed_config FILE`."""

import sys

from deepspeed.autotuning import autotuner
from deepspeed.launcher import runner

if __name__ == "__main__":
    # Otherwise it logs to the run in MLFLOW_RUN_ID, and fails if MLflow is installed and the variable is not set.
    autotuner.has_mlflow = False
    # With a hostfile that does not exist, DeepSpeed runs on this instance alone.
    runner.main(["--autotuning", "tune", "--hostfile", "none", *sys.argv[1:]])
