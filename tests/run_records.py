"""Records of runs that never ran, for what is made of records."""

import json
from pathlib import Path
from typing import Any

from allranks import engine_log
from allranks.history.records import Point, RankRecord, RunRecord, Status, StepRecord

BEGIN = 1783166584.0
NOW = BEGIN + 100
RATES = (1e-4, 1e-3, 1e-2, 1e-1)


def make_step(name: str, needs: tuple[str, ...] = (), **changes: Any) -> StepRecord:
    step = StepRecord(name, "", "component", "none", 1, 1, needs, Status.COMPLETED, 0, BEGIN + 1, BEGIN + 5)
    for key, value in changes.items():
        setattr(step, key, value)
    return step


def make_run(*steps: StepRecord, **changes: Any) -> RunRecord:
    run = RunRecord("calm_otter", "digits", "Digits", "digits.py", "rack", Status.COMPLETED, BEGIN, BEGIN + 60)
    run.steps = list(steps)
    for key, value in changes.items():
        setattr(run, key, value)
    return run


def make_curve(*values: float) -> list[Point]:
    return [Point(step, value, BEGIN + step) for step, value in enumerate(values)]


def trained_run(number: int, **changes: Any) -> RunRecord:
    """A run with a curve of two points, whose accuracy falls with its number."""
    step = make_step("train", metrics={"loss": make_curve(2, 1 / (number + 1)), "speed": make_curve(1, 2)})
    run = make_run(step, id=f"run{number:02}", created=BEGIN + number, inputs={"lr": f"0.{number}", "seed": "1"})
    run.results = {"accuracy": 1 - number / 100}
    for name, value in changes.items():
        setattr(run, name, value)
    return run


def make_ranks(instances: int, processes: int) -> list[RankRecord]:
    return [
        RankRecord(rank, rank // processes, rank % processes, "host", Status.COMPLETED, BEGIN + 1, BEGIN + 4, 0)
        for rank in range(instances * processes)
    ]


def make_sweep(values: tuple[float | None, ...], goal: str = "maximize") -> list[StepRecord]:
    """A sweep with a trial for each value of its metric; one without a value failed."""
    inputs = {"data": "/data", "search_space.lr": "loguniform(-9, -2)", "search_space.kind": "choice(a, b)"}
    best = {"accuracy": make_curve(0.9)}
    steps = [make_step("tune", kind="sweep", inputs={**inputs, "objective": f"{goal} accuracy"}, metrics=best)]
    for number, value in enumerate(values):
        steps.append(
            make_step(
                f"tune.trial[{number}]",
                status=Status.FAILED if value is None else Status.COMPLETED,
                inputs={"lr": str(RATES[number % 4]), "kind": "ab"[number % 2], "data": "/data"},
                metrics={} if value is None else {"accuracy": make_curve(0.5, value)},
                ended=NOW + number,
            )
        )
    return steps


def write_matrix(path: Path, labels: object, matrix: object, kind: str = "confusion_matrix") -> None:
    data = {"class_labels": labels, "matrix": matrix}
    path.write_text(json.dumps({"schema_type": kind, "schema_version": "v1", "data": data}))


def write_engine_log(folder: Path) -> Path:
    """Write a log of the engine into a run's folder, if it has none, and return its file."""
    file = folder / engine_log.FILE
    if not file.exists():
        entries = (
            {"monotonic": 7.0, "process": "engine", "level": "info", "event": "run started"},
            {"monotonic": 7.5, "process": "supervisor", "level": "debug", "event": "rank started", "node": "train"},
            {
                "monotonic": 9.25,
                "process": "agent 0",
                "level": "error",
                "event": "rank exited",
                "node": "train",
                "rank": 2,
            }
            | {"exception": "OSError: gone"},
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps({"time": 0.0, "pid": 1, **entry}) + "\n" for entry in entries) + '{"cut')
    return file
