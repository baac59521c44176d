"""The process that calls MLflow. It reads one JSON request per line from stdin, and writes one JSON answer per line to
stdout."""

import contextlib
import gc
import importlib
import json
import logging
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from allranks import engine_log
from allranks.deferred_imports import DeferredImports, forget
from allranks.hardware import shared_memory
from allranks.local.instances.kernel import die_with_parent
from allranks.secrets import redact

_log = logging.getLogger(__name__)

PARENT_TAG = "mlflow.parentRunId"
RESULT_TAG = "allranks.result"
"""The tag in which a step's code reports its result as one line."""

CHUNK = 100
"""Maximum parameters, or runs of a query, per request: MLflow's limit for parameters."""

_PLACES = (
    ("logged_models", "artifact_location"),
    ("model_versions", "storage_location"),
    ("model_versions", "source"),
    ("runs", "artifact_uri"),
    ("experiments", "artifact_location"),
)
"""The columns with artifact locations in MLflow's database."""

_parents: dict[str, str] = {}
"""The ids of the pipelines' MLflow runs that this process has created or continued, by name. The engine may stop
waiting for the answer that contains the id."""
_DEFERRED = (
    "mlflow.gateway",
    "mlflow.genai",
    "mlflow.models",
    "mlflow.projects",
    "mlflow.store._unity_catalog",
    "mlflow.store.artifact.databricks_artifact_repo",
    "mlflow.tracing.display",
    "mlflow.tracing.fluent",
    "pandas",
    "pyarrow",
)
STORES = ("mlflow.store.tracking.sqlalchemy_store", "mlflow.store.model_registry.sqlalchemy_store")
"""The modules that the client imports when it opens a database."""


def import_quickly(*names: str) -> None:
    """Import modules of MLflow, deferring those for training, evaluation, tracing and serving. A deferred module is
    loaded when one of its names is used. A run waits for this import: it takes 2.0 s instead of 3.0 s.

    Import them as usual if this version of MLflow has another structure."""
    before = set(sys.modules)
    try:
        with DeferredImports(_DEFERRED):
            for name in names:
                importlib.import_module(name)
    except Exception:
        for name in set(sys.modules) - before:
            if name == "mlflow" or name.startswith("mlflow."):
                forget(name)
        for name in names:
            importlib.import_module(name)


def main(engine: str, tracking_uri: str, log: str) -> None:
    """Answer requests until stdin ends.

    engine: the process id of the engine
    log:    the engine's log; "" for none
    """
    die_with_parent()
    if os.getppid() != int(engine):
        return  # the engine ended before `die_with_parent`
    os.umask(0o077)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of libraries must not mix with answers
    logging.disable(logging.WARNING)
    gc.disable()  # a collection while modules are imported frees nothing, and takes a sixth of the time
    import_quickly("mlflow.tracking", *STORES)
    mlflow_client = importlib.import_module("mlflow.tracking").MlflowClient
    gc.freeze()
    gc.enable()
    client = None
    for line in sys.stdin:
        request = json.loads(line)
        name = request.pop("request")
        if log and client is None:
            _start_log(log)
        started = time.monotonic()
        try:
            # The database of a new workspace must not exist before a run needs it.
            client = client or _open(mlflow_client, tracking_uri)
            answer = HANDLERS[name](client, **request)
        except Exception as error:  # no failure of MLflow may end the run; the engine adds a note
            _log.exception("request failed", extra={"request": name})
            answer = {"error": f"{type(error).__name__}: {error}"}
        _log.info("request answered", extra={"request": name, "seconds": round(time.monotonic() - started, 6)})
        print(json.dumps(answer), file=answers)
    answers.close()
    # The engine waits for the end of this process. Python would free a thousand modules first.
    os._exit(0)


def _start_log(path: str) -> None:
    """Log to the engine's log. MLflow and its libraries stay silent."""
    with contextlib.suppress(OSError):  # the run has been removed already
        engine_log.start(path, "tracker", redact)
        logging.disable(logging.NOTSET)
        logging.getLogger().setLevel(logging.ERROR)
        for library in ("mlflow", "alembic"):
            logging.getLogger(library).setLevel(logging.ERROR)


def _open(client: Callable[[str], Any], tracking_uri: str) -> Any:
    """Return an MLflow client for the database, which is created if it does not exist."""
    database = Path(unquote(tracking_uri.removeprefix("sqlite:///")))
    try:
        create_database(client, database)
    except Exception:  # the client creates it as usual, or reports the reason
        _log.warning("database not created quickly", exc_info=True)
    with contextlib.suppress(sqlite3.Error):  # of a database of another version
        relocate(database)
    return client(tracking_uri)


def relocate(database: Path) -> None:
    """Correct the artifact locations in a database whose workspace has been moved."""
    here = f"file://{database.parent}/mlflow/"
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True)) as connection, connection:
        for (place,) in connection.execute("SELECT artifact_location FROM experiments").fetchall():
            before = place[: place.rfind("/mlflow/") + len("/mlflow/")]
            if before.startswith("file://") and before != here and not os.path.exists(before.removeprefix("file://")):
                for table, column in _PLACES:
                    connection.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (before, here))


def create_database(client: Callable[[str], Any], database: Path) -> None:
    """Create MLflow's database, if it does not exist yet.

    client: creates the tables when it is called with a URI, as `MlflowClient`

    MLflow creates its tables by replaying the history of their definitions, in hundreds of transactions, each of which
    waits for the disk. Here, they are written to a file in memory. Its copy becomes the database in one step, so an
    interrupted creation leaves no incomplete database.

    Measured with MLflow 3 on an SSD: 1.9 s instead of 8.1 s, on busy cores.
    """
    if database.exists():
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    unfinished = database.with_name(f"{database.name}.{os.getpid()}.new")
    try:
        with tempfile.TemporaryDirectory(dir=shared_memory.FOLDER if shared_memory.FOLDER.is_dir() else None) as folder:
            client(f"sqlite:///{folder}/{database.name}")
            source = sqlite3.connect(f"{folder}/{database.name}")
            with contextlib.closing(source), contextlib.closing(sqlite3.connect(unfinished)) as copy:
                source.backup(copy)
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.link(unfinished, database)
    finally:
        unfinished.unlink(missing_ok=True)


def create(
    client: Any, *, artifacts: str, experiment: str, name: str, tags: dict[str, str], parent: dict[str, Any] | None
) -> dict[str, Any]:
    """Create an MLflow run, and its experiment and its parent if they do not exist.

    artifacts: the folder for the artifacts of a new experiment
    parent:    the fields of `ParentRun`; None for a run without a parent
    """
    existing = client.get_experiment_by_name(experiment)
    if existing is None:
        location = "file://" + os.path.join(artifacts, experiment.replace("/", "_"))
        experiment_id = client.create_experiment(experiment, artifact_location=location)
    else:
        experiment_id = existing.experiment_id
    parent_id = None
    if parent is not None:
        parent_id = _parent(client, experiment_id, **parent)
        tags = {**tags, PARENT_TAG: parent_id}
    run_id = client.create_run(experiment_id, run_name=name, tags=tags).info.run_id
    return {"run_id": run_id, "parent_id": parent_id}


def _parent(
    client: Any, experiment_id: str, *, name: str, tags: dict[str, str], params: dict[str, str], run_id: str | None
) -> str:
    """Return the id of the parent: the run with that id, which runs again, or a new one if it no longer exists."""
    # 2 s, which the engine does not wait for.
    from mlflow.entities import Param
    from mlflow.exceptions import MlflowException  # 2 s

    known = _parents.get(tags["allranks.run"])
    if known is not None:
        return known
    if run_id is not None:
        try:
            client.update_run(run_id, status="RUNNING")
        except MlflowException:  # deleted by the user
            run_id = None
    if run_id is None:
        run_id = str(client.create_run(experiment_id, run_name=name, tags=tags).info.run_id)
        items = [Param(key, value) for key, value in params.items()]
        with contextlib.suppress(MlflowException):  # a name that MLflow does not accept
            for start in range(0, len(items), CHUNK):
                client.log_batch(run_id, params=items[start : start + CHUNK])
    _parents[tags["allranks.run"]] = run_id
    return run_id


def end(client: Any, *, run_id: str, status: str, folder: str) -> dict[str, Any]:
    """End an MLflow run. Return its curves (by metric, points [step, value, seconds since the epoch]), and the result
    that its code reported. folder: the folder of the step, which gets links to the artifacts of the run"""
    client.set_terminated(run_id, status)
    run = client.get_run(run_id)
    with contextlib.suppress(OSError):
        _link_artifacts(client, run, Path(folder))
    return {
        "result": run.data.tags.get(RESULT_TAG, ""),
        "metrics": {name: _points(client, run_id, name) for name in run.data.metrics},
    }


def _link_artifacts(client: Any, run: Any, folder: Path) -> None:
    """Link the artifacts and the models of a run into a folder: on Azure ML, they are among the job's artifacts."""
    from mlflow.utils.file_utils import local_file_uri_to_path  # 2 s

    models = [client.get_logged_model(output.model_id) for output in run.outputs.model_outputs] if run.outputs else []
    places = [(folder / model.name, model.artifact_location) for model in models]
    for target, uri in (*places, (folder, run.info.artifact_uri)):
        _link(Path(local_file_uri_to_path(uri)), target)


def _link(source: Path, target: Path) -> None:
    # ./outputs may be a link into an output of the step.
    if source.is_dir() and target.is_dir() and (target.name == "outputs" or not target.is_symlink()):
        for each in source.iterdir():
            _link(each, target / each.name)
    elif source.exists() and (target.is_symlink() or not target.exists()):
        target.unlink(missing_ok=True)  # of an earlier attempt
        target.symlink_to(source)


def curve(client: Any, *, run_id: str, metric: str) -> dict[str, Any]:
    """Return the values of a metric that an MLflow run has logged so far, in the format of `end`."""
    return {"points": _points(client, run_id, metric)}


def _points(client: Any, run_id: str, metric: str) -> list[list[float]]:
    history = client.get_metric_history(run_id, metric)
    return [[point.step, point.value, point.timestamp / 1000] for point in history]


def finish(client: Any, *, run_id: str, status: str, metrics: Mapping[str, float]) -> dict[str, Any]:
    """End the MLflow run of a pipeline, with its metrics."""
    from mlflow.exceptions import MlflowException  # 2 s

    for name, value in metrics.items():
        with contextlib.suppress(MlflowException):  # a name that MLflow does not accept
            client.log_metric(run_id, name, value, timestamp=int(time.time() * 1000))
    client.set_terminated(run_id, status)
    return {}


def registered(client: Any, *, run_ids: Sequence[str]) -> dict[str, Any]:
    """Return the versions of models that MLflow runs registered: by run, pairs [name, version]."""
    models: dict[str, list[list[str]]] = {}
    for start in range(0, len(run_ids), CHUNK):
        listed = ", ".join(f"'{run_id}'" for run_id in run_ids[start : start + CHUNK])
        for version in client.search_model_versions(f"run_id IN ({listed})", order_by=["creation_timestamp ASC"]):
            models.setdefault(version.run_id, []).append([version.name, str(version.version)])
    return {"models": models}


HANDLERS = {handler.__name__: handler for handler in (create, curve, end, finish, registered)}
"""The functions that answer requests, by the name of the request."""

if __name__ == "__main__":
    main(*sys.argv[1:])
