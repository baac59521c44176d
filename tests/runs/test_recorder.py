"""What a recorder saves of a run."""

from __future__ import annotations

import math
from pathlib import Path

from allranks.runs.observer import Observer
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import Point, RunRecord, StepRecord
from allranks.runs.store import Store


def test_the_results_of_a_run_are_the_last_values_that_say_most(tmp_path: Path) -> None:
    steps = [StepRecord("train", "train", "", "", 1, 1), StepRecord("evaluate", "evaluate", "", "", 1, 1)]
    run = RunRecord("r", "p", "p", "", "loopback", steps=steps)
    with Store(tmp_path / "db") as store:
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        recorder.add_points(
            steps[0], {"accuracy": [Point(0, 0.1, 0.0), Point(1, 0.5, 0.0)], "loss": [Point(0, math.nan, 0.0)]}
        )
        recorder.add_points(steps[1], {"accuracy": [Point(0, 0.75, 0.0)]})
        recorder.ended()
        (saved,) = store.runs(steps=False)
        assert saved.results == {"accuracy": 0.75}
        recorder.forget_points(steps[1])
        recorder.ended()  # as after `resume`
        assert store.runs(steps=False)[0].results == {"accuracy": 0.5}
