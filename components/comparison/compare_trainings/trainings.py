"""Trainings as read from their histories, and the figures that compare them."""

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
    """The content of a history.

    name:        the strategy, made unique among the trainings
    curve:       pairs of step and loss
    seconds:     per step, for each point of the curve
    peak_memory: MiB, on the rank with the highest
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

    difference:   the largest relative difference of its loss from the first training's at the same step; None if they
                  have no step in common, or the loss is not finite
    step_seconds: the median without the first point, which includes the warm-up
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
    """Return the trainings, each with a unique name. Raise BadHistory."""
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
    """Return the figures of each training. Differences are relative to the first one."""
    return [_row(training, trainings[0]) for training in trainings]


def _read(file: Path) -> Training:
    try:
        history = json.loads(file.read_text(encoding="utf-8"))
        points = sorted(history["points"], key=lambda point: int(point["step"]))
        training = Training(
            name=_name(history),
            launcher=str(history["launcher"]),
            world_size=int(history["world_size"]),
            parameters=int(history["parameters"]),
            tokens_per_step=int(history["tokens_per_step"]),
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
    return strategy if found.get("deepspeed_stage") is None else f"{strategy} ZeRO {int(found['deepspeed_stage'])}"


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
    differences = [
        abs(loss - expected[step]) / abs(expected[step])
        for step, loss in training.curve
        if step in expected and expected[step] != 0
    ]
    return max(differences) if differences and all(map(math.isfinite, differences)) else None
