"""Read a training's throughput from its history. docs/scaling.md describes the file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class BadHistory(Exception):
    """Histories cannot be used. The message says which, what was found and what to do; nothing was written."""


@dataclass(frozen=True)
class Machine:
    """A machine that runs instances, and the resources that they share on it."""

    name: str
    cores: int
    gpus: int


@dataclass(frozen=True)
class Training:
    """A training on a number of instances, without its warm-up.

    sample:           what is counted, in the singular
    samples_per_step: over all ranks, the mean
    seconds:          per step, for each point
    rates:            samples per second over all ranks, for each point
    steps:            number of steps that the points cover
    machines:         empty if the history does not name them
    time:             start and end, in seconds since the epoch; None if the history does not give them
    """

    instance_count: int
    world_size: int
    device: str
    sample: str
    samples_per_step: float
    seconds: tuple[float, ...]
    rates: tuple[float, ...]
    steps: int
    machines: tuple[Machine, ...]
    time: tuple[float, float] | None


def read(files: Sequence[Path], warm_up_steps: int) -> list[Training]:
    """Return the trainings, in ascending order of instances. Raise BadHistory."""
    trainings = sorted((_read(file, warm_up_steps) for file in files), key=lambda training: training.instance_count)
    counts = [training.instance_count for training in trainings]
    repeated = sorted({count for count in counts if counts.count(count) > 1})
    if repeated:
        raise BadHistory(f"several histories have instance_count {repeated[0]}. Give one for each number of instances.")
    samples = sorted({training.sample for training in trainings})
    if len(samples) > 1:
        raise BadHistory(f"the histories count {' and '.join(samples)}. Give histories of one training.")
    return trainings


def _read(file: Path, warm_up_steps: int) -> Training:
    try:
        history = json.loads(file.read_text(encoding="utf-8"))
        points = [_point(point, history) for point in history["points"]]
        training = _training(history, sorted(points), warm_up_steps)
    except OSError as error:
        raise BadHistory(
            f"{file} cannot be read ({error.strerror}). Give the output `history` of a training."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadHistory(
            f"{file} is no history with the pace of a training ({error!r}). docs/scaling.md says what it has to hold."
        ) from None
    if training is None:
        raise BadHistory(
            f"{file} has no step after the first {warm_up_steps}, which are left out. Train for more steps, or give a "
            f"smaller warm_up_steps."
        )
    return training


def _point(point: dict[str, Any], found: dict[str, Any]) -> tuple[int, float, float]:
    step, seconds = int(point["step"]), float(point["seconds"])
    samples = float(point["samples"] if "samples" in point else found["samples_per_step"])
    if not (0 < seconds < math.inf and 0 < samples < math.inf):
        raise ValueError(f"{samples:g} samples in {seconds:g} s at step {step}")
    return step, seconds, samples


def _training(found: dict[str, Any], points: Sequence[tuple[int, float, float]], warm_up_steps: int) -> Training | None:
    """Return the training, None if no point is left. A point counts if all of its steps come after the warm-up."""
    starts = [0, *(step for step, _, _ in points)]
    measured = [(start, *point) for start, point in zip(starts, points, strict=False) if start >= warm_up_steps]
    if not measured:
        return None
    time = (float(found["started"]), float(found["ended"])) if "started" in found else None
    return Training(
        instance_count=_positive(found, "instance_count"),
        world_size=_positive(found, "world_size"),
        device=str(found.get("device", "unknown")),
        sample=str(found.get("sample", "sample")),
        samples_per_step=sum(samples * (step - start) for start, step, _, samples in measured)
        / sum(step - start for start, step, _, _ in measured),
        seconds=tuple(seconds for _, _, seconds, _ in measured),
        rates=tuple(samples / seconds for _, _, seconds, samples in measured),
        steps=sum(step - start for start, step, _, _ in measured),
        machines=tuple(Machine(**machine) for machine in found.get("machines", ())),
        time=time,
    )


def _positive(found: dict[str, Any], name: str) -> int:
    value = int(found[name])
    if value < 1:
        raise ValueError(f"{name} is {value}")
    return value
