"""A training's figures: rank 0's to MLflow, every rank's progress to the live view."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allranks.contract import report
from allranks.runtime.mlflow_pytorch import mlflow_pytorch
from allranks.runtime.tracking import Tracking

if TYPE_CHECKING:
    import torch
    from torch import nn


class Metrics:
    """Where a training's figures go. Call it on every rank: rank 0 alone sends to MLflow.

    MLflow is used where MLFLOW_TRACKING_URI is set, as it is in every Azure ML job, and only there. The run is the
    one of MLFLOW_RUN_ID, which whoever made it also ends; where that is not set, one of its own. A store that fails is
    told once and ends no training; only `log_model` raises, since a model is a result.
    """

    def __init__(self, *, is_main: bool) -> None:
        self._tracking = Tracking.open() if is_main else None

    def log(
        self,
        values: Mapping[str, float | torch.Tensor],
        *,
        step: int,
        total: int | None = None,
        epoch: int | None = None,
    ) -> None:
        """Log figures of a step. Sent to MLflow in batches and in the background.

        values: by name; a tensor of one element is read, which on a GPU waits for it
        step:   steps made so far; total: steps of the whole training, for a bar; epoch: from 0
        """
        now = time.time()
        figures = {name: float(value) for name, value in values.items()}
        report.append(report.Progress(step=step, total=total, metrics=figures, epoch=epoch, time=now))
        if self._tracking:
            self._tracking.send(figures, step=step, time=now)

    def log_params(self, values: Mapping[str, Any]) -> None:
        """Log the training's parameters, as text."""
        if self._tracking:
            self._tracking.tell("parameters", lambda mlflow, run: mlflow.log_params(dict(values), run_id=run))

    def log_dict(self, value: Mapping[str, Any], file: str) -> None:
        """Log a mapping as a JSON or YAML artifact of the run, by the end of the file's name."""
        if self._tracking:
            self._tracking.tell("artifacts", lambda mlflow, run: mlflow.log_dict(dict(value), file, run_id=run))

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        """Log a file as an artifact of the run, in a folder of its artifacts."""
        if self._tracking:
            self._tracking.tell("artifacts", lambda mlflow, run: mlflow.log_artifact(str(path), folder, run_id=run))

    def log_model(self, model: nn.Module, name: str = "model", **options: Any) -> None:
        """Log a model, unwrapped. The options go to mlflow.pytorch.log_model, which needs an input_example.

        Raises what it raises: unlike a figure, a model that is not kept is a training lost.
        """
        if self._tracking:
            with self._tracking.active() as mlflow:
                if mlflow:
                    mlflow_pytorch().log_model(model, name=name, **options)

    def close(self, status: str) -> None:
        """Send what is left, and end the run with an MLflow status where it is one of its own."""
        if self._tracking:
            self._tracking.close(status)
