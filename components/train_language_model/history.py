"""The figures that a training logged, as a file for comparing trainings."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Point:
    """Figures at a step.

    loss:        the mean over the step's tokens, before the weights are updated
    seconds:     per step, the mean since the previous point
    peak_memory: MiB, on the rank with the highest
    """

    step: int
    loss: float
    seconds: float
    peak_memory: float


class History:
    """The points of a training. Checkpoints include them, so that a resumed training's history is complete."""

    def __init__(self) -> None:
        self._points: list[Point] = []

    def add(self, point: Point) -> None:
        """Add a point."""
        self._points.append(point)

    def state_dict(self) -> dict[str, Any]:
        return {"points": [asdict(point) for point in self._points]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._points = [Point(**point) for point in state["points"]]

    def write(self, file: Path, about: dict[str, Any]) -> None:
        """Write the points, and other facts about the training, as JSON."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(about | self.state_dict(), indent=2) + "\n", encoding="utf-8")
