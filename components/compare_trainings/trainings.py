"""Trainings as their histories tell of them, and the figures that they are compared by."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any


class BadHistory(Exception):
    """A history cannot be used. The message says which, what was found and what to do; nothing was written."""


@dataclass(frozen=True)
class Training:
    """What a history holds.

    name:        the strategy, with what else tells it from the others
    curve:       pairs of step and loss
    seconds:     of a step, for each point of the curve
    peak_memory: MiB, of the rank that held the most
    """

    name: str
    launcher: str
    world_size: int
    parameters: int
    tokens_per_step: int
    curve: tuple[tuple[int, float], ...]
    seconds: tuple[float, ...]
    peak_memory: float


@dataclass(frozen=True)
class Row:
    """A training's figures.

    difference:   the largest relative one of its loss from the first training's at the same step; None where the two
                  have no step in common, or the loss is no number
    step_seconds: the median without the first point, in which a training warms up
    """

    name: str
    launcher: str
    world_size: int
    loss: float
    difference: float | None
    step_seconds: float
    tokens_per_second: float
    peak_memory: float


def read(files: Sequence[Path]) -> list[Training]:
    """The trainings, each with a name of its own. Raises BadHistory."""
    if not files:
        raise BadHistory("no history is given. Give the output `history` of at least one training.")
    trainings = [_read(file) for file in files]
    uses = Counter(training.name for training in trainings)
    counted: Counter[str] = Counter()
    for index, training in enumerate(trainings):
        counted[training.name] += 1
        if uses[training.name] > 1:
            trainings[index] = replace(training, name=f"{training.name} ({counted[training.name]})")
    return trainings


def rows(trainings: Sequence[Training]) -> list[Row]:
    """The figures of each, the first one being what the others differ from."""
    return [_row(training, trainings[0]) for training in trainings]


def _read(file: Path) -> Training:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        points = sorted(found["points"], key=lambda point: int(point["step"]))
        training = Training(
            name=_name(found),
            launcher=str(found["launcher"]),
            world_size=int(found["world_size"]),
            parameters=int(found["parameters"]),
            tokens_per_step=int(found["tokens_per_step"]),
            curve=tuple((int(point["step"]), float(point["loss"])) for point in points),
            seconds=tuple(float(point["seconds"]) for point in points),
            peak_memory=max((float(point["peak_memory"]) for point in points), default=0.0),
        )
    except OSError as error:
        raise BadHistory(
            f"{file} cannot be read ({error.strerror}). Give the output `history` of a training."
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadHistory(f"{file} is no history ({error!r}). Give the output `history` of a training.") from None
    if not points:
        raise BadHistory(f"{file} holds no point. Give the history of a training that made at least one step.")
    return training


def _name(found: dict[str, Any]) -> str:
    strategy = str(found["strategy"])
    return strategy if found.get("zero_stage") is None else f"{strategy} ZeRO {int(found['zero_stage'])}"


def _row(training: Training, first: Training) -> Row:
    seconds = median(training.seconds[1:] or training.seconds)
    return Row(
        name=training.name,
        launcher=training.launcher,
        world_size=training.world_size,
        loss=training.curve[-1][1],
        difference=_difference(training, first),
        step_seconds=seconds,
        tokens_per_second=training.tokens_per_step / seconds if seconds else 0.0,
        peak_memory=training.peak_memory,
    )


def _difference(training: Training, first: Training) -> float | None:
    expected = dict(first.curve)
    found = [
        abs(loss - expected[step]) / abs(expected[step])
        for step, loss in training.curve
        if step in expected and expected[step] != 0
    ]
    return max(found) if found and all(map(math.isfinite, found)) else None
