"""Rank 0's line to MLflow: in the background, in batches, and never in the training's way."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from allranks.runtime import mlflow_pytorch
from allranks.runtime.notes import note

BATCH = 500
"""Metrics of one request. One by one a server takes some tens a second, in batches of this size 1,600."""

INTERVAL_SECONDS = 1.0
"""How long metrics gather before they are sent."""

CLOSE_SECONDS = 60.0
"""How long the end of a training waits for metrics that are still on their way."""

FAILURES = 3
"""After so many requests in a row have failed, nothing more is sent."""

Figure: TypeAlias = tuple[str, float, int, int]
"""A metric's name, value, time in milliseconds, and step."""


class Tracking:
    """The MLflow run of this training. A daemon thread imports MLflow, opens the run and sends the metrics."""

    def __init__(self) -> None:
        self._metrics: queue.Queue[Figure | None] = queue.Queue()  # None wakes the thread up
        self._imported, self._opened, self._closing = threading.Event(), mlflow_pytorch.opened, threading.Event()
        self._opened.clear()
        self._run_id: str | None = None
        self._status = "FINISHED"
        self._told: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="allranks-tracking", daemon=True)
        # A process forked in the middle of an import (a DataLoader's worker) would inherit its locks, held for ever.
        os.register_at_fork(before=lambda: self._imported.wait(mlflow_pytorch.IMPORT_SECONDS))
        self._thread.start()

    @classmethod
    def open(cls) -> Tracking | None:
        """Return the tracking of this process; None where MLFLOW_TRACKING_URI is not set."""
        if not os.environ.get("MLFLOW_TRACKING_URI"):
            return None
        # MLflow tries for a quarter of an hour by default; the other ranks do not wait for so long.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        return cls()

    def send(self, figures: Mapping[str, float], *, step: int, time: float) -> None:
        """Queue the figures of a step; `time` in seconds since the epoch."""
        if self._thread.is_alive():
            for name, value in figures.items():
                self._metrics.put((name, value, int(time * 1000), step))

    def tell(self, what: str, action: Callable[[Any, str], object]) -> None:
        """Call action(mlflow, run_id) now. Where it fails that is told, once for each `what`, and nothing is raised."""
        self._opened.wait()
        if self._run_id is None:
            return
        import mlflow

        try:
            action(mlflow, self._run_id)
        except Exception as error:  # whatever a store raises, it must not end a training
            self._tell_failure(what, error)

    @contextmanager
    def active(self) -> Generator[Any]:
        """The mlflow module with the run as its active one, or None where there is no run."""
        self._opened.wait()
        if self._run_id is None:
            yield None
            return
        import mlflow

        if mlflow.active_run():  # the script's own choice
            yield mlflow
            return
        given = os.environ.get("MLFLOW_RUN_ID")
        mlflow.start_run(run_id=self._run_id)
        try:
            yield mlflow
        finally:
            mlflow.end_run("RUNNING")  # the training goes on
            if given:
                os.environ["MLFLOW_RUN_ID"] = given  # which MLflow forgets at the end of a run

    def close(self, status: str) -> None:
        """Send what is left, for a bounded time, and end a run of its own with an MLflow status."""
        self._status = status
        self._closing.set()
        self._metrics.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            note(f"the MLflow store did not answer for {CLOSE_SECONDS:g} s: the last metrics are not in it")

    def _work(self) -> None:
        try:
            own_run = self._open_run()
        except Exception as error:  # also an ImportError from deep inside MLflow
            self._tell_failure("the run", error)
            return
        finally:
            self._imported.set()
            self._opened.set()
        failures = 0
        while failures < FAILURES and not (self._closing.is_set() and self._metrics.empty()):
            batch = [self._metric(*figure) for figure in self._gather()]
            try:
                self._client.log_batch(self._run_id, metrics=batch)
                failures = 0
            except Exception as error:
                failures += 1
                self._tell_failure("metrics", error)
        if own_run:
            import mlflow

            try:
                mlflow.end_run(self._status)
            except Exception as error:
                self._tell_failure("the end of the run", error)

    def _open_run(self) -> bool:
        """Import MLflow and find the run, or start one. Return whether it is one of our own."""
        import mlflow

        self._imported.set()
        self._metric = mlflow.entities.Metric
        self._client = mlflow.MlflowClient()
        if given := os.environ.get("MLFLOW_RUN_ID"):
            self._run_id = self._client.get_run(given).info.run_id
            return False
        self._run_id = mlflow.start_run().info.run_id
        return True

    def _gather(self) -> list[Figure]:
        """Wait for a figure, and a little for others to come."""
        gathered = [self._metrics.get()]
        if self._metrics.qsize() < BATCH:
            self._closing.wait(INTERVAL_SECONDS)
        with suppress(queue.Empty):
            while len(gathered) < BATCH:
                gathered.append(self._metrics.get_nowait())
        return [figure for figure in gathered if figure is not None]

    def _tell_failure(self, what: str, error: Exception) -> None:
        if what in self._told:
            return
        self._told.add(what)
        reason = str(error).strip().splitlines()[:1] or [""]
        note(
            f"MLflow at {os.environ.get('MLFLOW_TRACKING_URI')} does not take {what}: {type(error).__name__}: "
            f"{reason[0]}. The training goes on; this is said once."
        )
