"""Rank 0's connection to MLflow: a background thread sends metrics in batches and does not block the training."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, TypeAlias

from allranks.contract import report
from allranks.runtime.notes import note

IMPORT_SECONDS = 60.0
"""Time limit for an import of MLflow in another thread."""

opened = threading.Event()
"""Set while no thread of the runtime is importing MLflow. MLflow has circular imports: if two threads import it at the
same time, they get incomplete modules."""
opened.set()

_LIGHTNING = ("lightning", "pytorch_lightning")


def mlflow_pytorch() -> ModuleType:
    """Import mlflow.pytorch without Lightning, and return it.

    If Lightning is installed, MLflow imports it for autologging, which takes 3 s on every rank and is not used here. If
    Lightning or mlflow.pytorch is already imported, nothing changes. Raise ImportError if MLflow is not installed.
    """
    opened.wait(IMPORT_SECONDS)
    absent = [name for name in _LIGHTNING if name not in sys.modules]
    # Importing a module that is None in sys.modules raises ImportError. MLflow then treats it as not installed.
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import mlflow.pytorch  # takes seconds
    finally:
        for name in absent:
            del sys.modules[name]
    return mlflow.pytorch  # type: ignore[no-any-return]


@contextlib.contextmanager
def installed_requirements() -> Iterator[None]:
    """Context manager in which MLflow saves models without comparing their requirements with the installed packages.

    MLflow warns about a model that requires another version. For this, it reads the file list of every installed
    package, which takes 1 s or more, and is superfluous if the requirements are the installed versions.
    """
    from mlflow.utils import environment  # takes seconds

    compare = getattr(environment, "warn_dependency_requirement_mismatches", None)
    if compare is None:  # another version of MLflow
        yield
        return
    environment.warn_dependency_requirement_mismatches = lambda requirements: None  # noqa: ARG005
    try:
        yield
    finally:
        environment.warn_dependency_requirement_mismatches = compare


BATCH = 500
"""Metrics per request. A server processes tens of single metrics per second, and 1,600 in batches of this size."""

INTERVAL_SECONDS = 1.0
"""Time in which metrics are collected before they are sent."""

CLOSE_SECONDS = 60.0
"""Time limit for sending the remaining metrics at the end of a training."""

FAILURES = 3
"""Number of consecutive failed requests after which nothing more is sent."""

Figure: TypeAlias = tuple[str, float, int, int]
"""A metric's name, value, time in milliseconds, and step."""


class Tracking:
    """The MLflow run of this training. A daemon thread imports MLflow, opens the run and sends the metrics."""

    def __init__(self) -> None:
        self._metrics: queue.Queue[Figure | None] = queue.Queue()  # None wakes the thread
        self._imported, self._opened, self._closing = threading.Event(), opened, threading.Event()
        self._opened.clear()
        self._run_id: str | None = None
        self._status = "FINISHED"
        self._reported: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="allranks-tracking", daemon=True)
        # A process that is forked during an import (a DataLoader's worker) would inherit locks that are never released.
        os.register_at_fork(before=lambda: self._imported.wait(IMPORT_SECONDS))
        self._thread.start()

    @classmethod
    def open(cls) -> Tracking | None:
        """Return the tracking of this process; None if MLFLOW_TRACKING_URI is not set."""
        if not os.environ.get("MLFLOW_TRACKING_URI"):
            return None
        # By default, MLflow retries for a quarter of an hour. The other ranks do not wait that long.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        return cls()

    def send(self, progress: report.Progress) -> None:
        """Queue the metrics of a step."""
        if self._thread.is_alive():
            for name, value in progress.metrics.items():
                self._metrics.put((name, value, int(progress.time * 1000), progress.step))

    def run_now(self, what: str, action: Callable[[Any, str], object]) -> None:
        """Call action(mlflow, run_id) now. Raise nothing: a failure is reported, once for each `what`."""
        self._opened.wait()
        if self._run_id is None:
            return
        import mlflow  # takes a second, and only a tracked training needs it

        try:
            action(mlflow, self._run_id)
        except Exception as error:  # no exception of an MLflow store may end a training
            self._report_failure(what, error)

    @contextmanager
    def active(self) -> Generator[Any]:
        """Context manager that yields the mlflow module with the run active, or None if there is no run."""
        self._opened.wait()
        if self._run_id is None:
            yield None
            return
        import mlflow  # takes a second, and only a tracked training needs it

        if mlflow.active_run():  # the script has started a run itself
            yield mlflow
            return
        run_id_variable = os.environ.get("MLFLOW_RUN_ID")
        mlflow.start_run(run_id=self._run_id)
        try:
            yield mlflow
        finally:
            mlflow.end_run("RUNNING")  # the training continues
            if run_id_variable:
                os.environ["MLFLOW_RUN_ID"] = run_id_variable  # MLflow deletes it at the end of a run

    def close(self, status: str) -> None:
        """Send the remaining metrics within CLOSE_SECONDS, and end the run with an MLflow status if this process
        created it."""
        self._status = status
        self._closing.set()
        self._metrics.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            note(f"the MLflow store did not answer within {CLOSE_SECONDS:g} s: the last metrics are missing")

    def _work(self) -> None:
        try:
            own_run = self._open_run()
        except Exception as error:  # also an ImportError inside MLflow
            self._report_failure("the run", error)
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
                self._report_failure("metrics", error)
        if own_run:
            import mlflow  # takes a second, and only a tracked training needs it

            try:
                mlflow.end_run(self._status)
            except Exception as error:
                self._report_failure("the end of the run", error)

    def _open_run(self) -> bool:
        """Import MLflow and find the run, or create one. Return whether it was created."""
        import mlflow  # takes a second, and only a tracked training needs it

        self._imported.set()
        self._metric = mlflow.entities.Metric
        self._client = mlflow.MlflowClient()
        if existing_run_id := os.environ.get("MLFLOW_RUN_ID"):
            self._run_id = self._client.get_run(existing_run_id).info.run_id
            return False
        self._run_id = mlflow.start_run().info.run_id
        return True

    def _gather(self) -> list[Figure]:
        """Wait for a metric, and up to INTERVAL_SECONDS for more."""
        gathered = [self._metrics.get()]
        if self._metrics.qsize() < BATCH:
            self._closing.wait(INTERVAL_SECONDS)
        with suppress(queue.Empty):
            while len(gathered) < BATCH:
                gathered.append(self._metrics.get_nowait())
        return [figure for figure in gathered if figure is not None]

    def _report_failure(self, what: str, error: Exception) -> None:
        if what in self._reported:
            return
        self._reported.add(what)
        reason = str(error).strip().splitlines()[:1] or [""]
        note(
            f"MLflow at {os.environ.get('MLFLOW_TRACKING_URI')} failed ({what}): {type(error).__name__}: "
            f"{reason[0]}. The training continues; this is reported once."
        )
