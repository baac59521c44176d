"""Log some steps' loss, parameters, a mapping, a file and a model."""

import sys
from pathlib import Path

import numpy
import torch

from allranks import runtime

STEPS = 700


def train(ranks: runtime.Ranks) -> None:
    ranks.metrics.log_params({"epochs": 2, "model": "mlp"})
    for step in range(1, STEPS + 1):
        ranks.metrics.log({"loss": torch.tensor(1 / step), "none": None}, step=step, total=STEPS, epoch=step // 400)
    ranks.metrics.log_dict({"classes": ["0", "1"]}, "classes.json")
    Path("report.txt").write_text("all is well")
    ranks.metrics.log_artifact("report.txt", "reports")
    if "model" in sys.argv:
        ranks.metrics.log_model(
            torch.nn.Linear(2, 1), input_example=numpy.zeros((1, 2), dtype=numpy.float32), pip_requirements=["torch"]
        )
    if "fail" in sys.argv:
        raise ValueError("no more")
    print("mlflow" in sys.modules)


if "without_mlflow" in sys.argv:
    sys.modules["mlflow"] = None  # type: ignore[assignment]

if __name__ == "__main__":
    runtime.main(train)
