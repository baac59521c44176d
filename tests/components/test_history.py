"""The history that every training writes."""

import json
from pathlib import Path

import pytest

from allranks_steps.history import History


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_point_has_the_means_of_its_steps_without_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", clock)
    history = History("image")
    for step in (1, 2):
        history.count(10 * step)
        clock.now += 3
        with history.paused():
            clock.now += 50
    point = history.add(2, 0.5, 64.0)
    assert (point.seconds, point.samples) == (3.0, 15.0)
    clock.now += 50
    history.restart()
    history.count(20)
    clock.now += 4
    history.add(3, 0.25, 64.0)
    history.add_evaluation(3, 0.75)
    history.write(tmp_path / "new/history", {"world_size": 2})
    written = json.loads((tmp_path / "new/history").read_text())
    assert (written["sample"], written["world_size"]) == ("image", 2)
    figures = [{key: point[key] for key in ("step", "loss", "seconds", "samples")} for point in written["points"]]
    assert figures == [
        {"step": 2, "loss": 0.5, "seconds": 3.0, "samples": 15.0},
        {"step": 3, "loss": 0.25, "seconds": 4.0, "samples": 20.0},
    ]
    assert written["evaluations"] == [{"step": 3, "loss": 0.75}]


def test_a_resumed_history_continues_also_from_one_without_evaluations() -> None:
    first, second = History("image"), History("image")
    first.count(10)
    first.add(1, 0.5, 64.0)
    first.add_evaluation(1, 0.75)
    state = first.state_dict()
    second.load_state_dict(state)
    assert second.state_dict() == state
    assert second.has_evaluation(1)
    assert not second.has_evaluation(2)
    second.load_state_dict({"points": state["points"]})
    assert second.state_dict() == state | {"evaluations": []}
