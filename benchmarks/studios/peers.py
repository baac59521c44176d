"""The pages of MLflow and TensorBoard: their first answer, and the curves of many runs, as their pages read them."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import peers
from bench.timing import environment, run
from studios.project import COMPARED, METRICS, curves
from studios.server import answers

TENSORBOARD = ("tensorboard>=2.20",)
_WRITE = """
import sys, json
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
for line in sys.stdin:
    name, points = json.loads(line)
    writer = EventFileWriter(f"{sys.argv[1]}/{name}")
    for step, time, values in points:
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values])
        writer.add_event(Event(wall_time=time, step=step, summary=summary))
    writer.close()
"""
_ASKED = 5
"""Metrics whose curves are requested of a peer. The seconds are those of all of them, by proportion."""


def write_mlflow(folder: Path) -> str:
    """Write the curves of the compared runs into a database of MLflow, and return its URI."""
    uri = f"sqlite:///{folder}/mlflow.db"
    create = "import mlflow, sys; client = mlflow.MlflowClient(sys.argv[1]); client.search_experiments()\n"
    create += "for name in sys.argv[2:]: print(client.create_run('0', run_name=name).info.run_id)"
    runs = run([sys.executable, "-c", create, uri, *COMPARED]).split()
    with sqlite3.connect(folder / "mlflow.db") as database:
        for number, run_id in enumerate(runs):
            points = [(m, p.value, int(p.time * 1000), run_id, p.step, 0) for m, p in curves(number)]
            columns = "(key, value, timestamp, run_uuid, step, is_nan) VALUES (?, ?, ?, ?, ?, ?)"
            database.executemany(f"INSERT INTO metrics {columns}", points)
            database.executemany(f"INSERT INTO latest_metrics {columns}", points[-len(METRICS) :])
    return uri


def write_tensorboard(folder: Path, python: str) -> Path:
    """Write the curves of the compared runs as event files, and return their folder."""
    lines = []
    for number, name in enumerate(COMPARED):
        points = list(curves(number))
        moments = [points[at : at + len(METRICS)] for at in range(0, len(points), len(METRICS))]
        lines.append(json.dumps([name, [(m[0][1].step, m[0][1].time, [(n, p.value) for n, p in m]) for m in moments]]))
    subprocess.run([python, "-c", _WRITE, str(folder / "events")], input="\n".join(lines), text=True, check=True)
    return folder / "events"


def mlflow_seconds(uri: str, port: int) -> tuple[float, float]:
    """Return the seconds until the first answer, and those of all curves."""
    command = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", uri, "--port", str(port)]
    base = f"http://127.0.0.1:{port}"
    with _served(command, base) as first:
        search = urllib.request.Request(
            f"{base}/ajax-api/2.0/mlflow/runs/search",
            json.dumps({"experiment_ids": ["0"], "max_results": 1000}).encode(),
            {"content-type": "application/json"},
        )
        runs = [each["info"]["run_id"] for each in json.loads(_read(search))["runs"]]
        history = f"{base}/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
        queries = [
            urllib.parse.urlencode({"run_ids": runs, "metric_key": metric, "max_results": 320}, doseq=True)
            for metric in METRICS[:_ASKED]
        ]
        return first, _seconds([f"{history}?{query}" for query in queries])


def tensorboard_seconds(events: Path, python: str, port: int) -> tuple[float, float]:
    """Return the seconds until the first answer, and those of all curves once it has loaded them."""
    command = [python, "-m", "tensorboard.main", "--logdir", str(events), "--port", str(port)]
    base = f"http://127.0.0.1:{port}"
    with _served(command, base) as first:
        scalars = f"{base}/data/plugin/scalars"
        until = time.monotonic() + 120
        while sum(map(len, json.loads(_read(f"{scalars}/tags")).values())) < len(COMPARED) * len(METRICS):
            if time.monotonic() > until:
                raise RuntimeError("TensorBoard has not loaded all runs")
            time.sleep(1)
        forms = [
            urllib.parse.urlencode({"tag": tag, "runs": COMPARED}, doseq=True).encode() for tag in METRICS[:_ASKED]
        ]
        return first, _seconds([urllib.request.Request(f"{scalars}/scalars_multirun", form) for form in forms])


def tensorboard_python() -> str | None:
    return peers.python(TENSORBOARD)


@contextlib.contextmanager
def _served(command: Sequence[str], base: str) -> Iterator[float]:
    """Start a server, and yield the seconds until its first answer. It has ended after the block."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        while not answers(f"{base}/"):
            if process.poll() is not None or time.perf_counter() - started > 120:
                raise RuntimeError(f"{command[2]} did not start")
            time.sleep(0.01)
        yield time.perf_counter() - started
    finally:
        for ended_by in (signal.SIGTERM, signal.SIGKILL):  # MLflow's server starts others, and may not end
            with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
                os.killpg(process.pid, ended_by)
                process.wait(20)


def _seconds(requests: Sequence[str | urllib.request.Request]) -> float:
    started = time.perf_counter()
    for request in requests:
        _read(request)
    return (time.perf_counter() - started) * len(METRICS) / _ASKED


def _read(request: str | urllib.request.Request) -> bytes:
    with urllib.request.urlopen(request, timeout=120) as answer:
        data: bytes = answer.read()
        return data
