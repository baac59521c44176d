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
    seconds:     per step, the mean since the previous point, without evaluations
    peak_memory: MiB, on the rank with the highest
    """

    step: int
    loss: float
    seconds: float
    peak_memory: float


@dataclass(frozen=True)
class Evaluation:
    """The mean loss over the validation tokens after a step."""

    step: int
    loss: float


class History:
    """The points of a training. Checkpoints include them, so that a resumed training's history is complete."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._evaluations: list[Evaluation] = []

    def add(self, point: Point) -> None:
        """Add a point."""
        self._points.append(point)

    def add_evaluation(self, evaluation: Evaluation) -> None:
        """Add an evaluation."""
        self._evaluations.append(evaluation)

    def has_evaluation(self, step: int) -> bool:
        """Return whether there is an evaluation after this step."""
        return any(evaluation.step == step for evaluation in self._evaluations)

    def state_dict(self) -> dict[str, Any]:
        return {"points": list(map(asdict, self._points)), "evaluations": list(map(asdict, self._evaluations))}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._points = [Point(**point) for point in state["points"]]
        self._evaluations = [Evaluation(**evaluation) for evaluation in state["evaluations"]]

    def write(self, file: Path, about: dict[str, Any]) -> None:
        """Write the points and evaluations, and other facts about the training, as JSON."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(about | self.state_dict(), indent=2) + "\n", encoding="utf-8")
