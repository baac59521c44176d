"""Metrics of a training, which rank 0 logs to MLflow and to the live view."""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeAlias

from allranks.contract import report
from allranks.runtime.metrics.tracking import Tracking, mlflow_pytorch
from allranks.runtime.notes import note

if TYPE_CHECKING:
    import torch
    from torch import nn

_INTERVAL_SECONDS = 0.5
"""Time in which metrics are collected before they are written."""
_CLOSE_SECONDS = 10.0
"""Time limit of `close` for values that a device or other ranks are still computing."""


class Metrics:
    """Log metrics to MLflow and to the live view. Call it on every rank; only rank 0 logs.

    MLflow is used only if MLFLOW_TRACKING_URI is set, as in every Azure ML job. Metrics go to the run MLFLOW_RUN_ID,
    which its creator ends, or to a new run if the variable is not set. A failing MLflow server is reported once and
    does not end the training. Only `log_model` raises, because a model is a result."""

    def __init__(self, *, is_main: bool) -> None:
        self._tracking = Tracking.open() if is_main else None
        self._writer = _MetricsWriter(self._tracking) if is_main else None

    def log(
        self,
        values: Mapping[str, SupportsFloat | None],
        *,
        step: int,
        total: int | None = None,
        epoch: int | None = None,
    ) -> None:
        """Log metrics of a step. They are written in batches and in the background, after at most a second.

        values: by name: numbers, tensors of one element, or means over the ranks (`Ranks.mean`). A tensor is logged as
                it is now. This process waits neither for a GPU that still computes it nor for the other ranks.
                None, such as a gradient norm before the first step, is left out.
        step:   number of steps so far
        total:  number of steps of the whole training, for the progress bar
        epoch:  from 0
        """
        if self._writer:
            now = {name: snapshot(value) for name, value in values.items() if value is not None}
            self._writer.add((step, total, epoch, time.time(), now))

    def log_params(self, values: Mapping[str, Any]) -> None:
        """Log parameters of the training as text."""
        if self._tracking:
            self._tracking.run_now("parameters", lambda mlflow, run: mlflow.log_params(dict(values), run_id=run))

    def log_dict(self, value: Mapping[str, Any], file: str) -> None:
        """Log a mapping as a JSON or YAML artifact of the run. The suffix of `file` determines the format."""
        if self._tracking:
            self._tracking.run_now("artifacts", lambda mlflow, run: mlflow.log_dict(dict(value), file, run_id=run))

    def log_artifact(self, path: str | Path, folder: str | None = None) -> None:
        """Log a file as an artifact of the run. folder: within the artifacts."""
        if self._tracking:
            self._tracking.run_now("artifacts", lambda mlflow, run: mlflow.log_artifact(str(path), folder, run_id=run))

    def log_model(self, model: nn.Module, name: str = "model", **options: Any) -> None:
        """Log an unwrapped model.

        options: keyword arguments of mlflow.pytorch.log_model, which requires input_example

        Raise the exceptions of log_model: unlike a metric, a model must not be lost.
        """
        if self._tracking:
            with self._tracking.active() as mlflow:
                if mlflow:
                    mlflow_pytorch().log_model(model, name=name, **options)

    def close(self, status: str) -> None:
        """Write the remaining metrics, and end the run with an MLflow status if this process created it."""
        if self._writer:
            self._writer.close()
        if self._tracking:
            self._tracking.close(status)


_Entry: TypeAlias = tuple[int, int | None, int | None, float, Mapping[str, SupportsFloat]]
"""A step, the total and the epoch as `Metrics.log` takes them, the time in seconds since the epoch, and the values."""


class _MetricsWriter:
    """A daemon thread that reads the logged values and writes them, in the order of the calls."""

    def __init__(self, tracking: Tracking | None) -> None:
        self._tracking = tracking
        self._entries: deque[_Entry] = deque()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, entry: _Entry) -> None:
        """Add the metrics of a step, which are read later. After `close`, write them now."""
        self._entries.append(entry)  # without waking the thread, which would interrupt the training
        if self._closing.is_set():
            self._write()
        elif self._thread is None:
            self._thread = threading.Thread(target=self._work, name="allranks-metrics", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def close(self) -> None:
        """Write all entries, and stop the thread."""
        atexit.unregister(self.close)
        self._closing.set()
        if self._thread is None:
            return
        self._thread.join(_CLOSE_SECONDS)
        if self._thread.is_alive():
            note(f"the last metrics were not computed within {_CLOSE_SECONDS:g} s: they are missing")

    def _work(self) -> None:
        while not self._closing.wait(_INTERVAL_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        events = []
        while self._entries:
            step, total, epoch, moment, values = self._entries.popleft()
            progress = report.Progress(step, total, _read(values), epoch, moment)
            events.append(progress)
            if self._tracking:
                self._tracking.send(progress)
        if events:
            report.append_all(events)


def _read(values: Mapping[str, SupportsFloat]) -> dict[str, float]:
    """Return the values as numbers, without values whose device or ranks have failed."""
    figures = {}
    for name, value in values.items():
        try:
            figures[name] = float(value)
        except RuntimeError:  # the training fails with the same error
            continue
    return figures


def snapshot(value: SupportsFloat) -> SupportsFloat:
    """Return an object whose float() is the value as it is now. Another thread can read it.

    A tensor on a CUDA device is copied to the CPU when the device gets there. Any other number is read now, unless it
    has a method `snapshot`. Raise as float() does if a tensor has more than one element.
    """
    if type(value) is float:
        return value
    own = getattr(value, "snapshot", None)
    if own is not None:
        snapshot: SupportsFloat = own()
        return snapshot
    # float() of a tensor that requires a gradient, as a loss does, warns on every rank.
    detach = getattr(value, "detach", None)
    if detach is None:
        return float(value)
    tensor = detach()
    return CudaCopy(tensor) if getattr(tensor, "is_cuda", False) else float(tensor)


class CudaCopy:
    """A copy on the CPU of a CUDA tensor of one element, made asynchronously in the order of the current stream."""

    def __init__(self, tensor: torch.Tensor) -> None:
        import torch  # TensorFlow's environment does not have it

        self._copy = torch.empty((), dtype=tensor.dtype, pin_memory=True)
        self._copy.copy_(tensor.reshape(()), non_blocking=True)
        self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._copied.record(torch.cuda.current_stream(tensor.device))

    def __float__(self) -> float:
        self._copied.synchronize()
        return float(self._copy)
