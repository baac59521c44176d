"""Read the histories of trainings, which `history` and `runtime.StepTimes` write (docs/how-to/scaling.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from allranks.runtime.ranks.machines import Machine
from allranks_steps.history import Point
from allranks_steps.messages import bad_input


@dataclass(frozen=True)
class Training:
    """A training on a number of instances.

    name:     the strategy, with the stage of DeepSpeed
    sample:   name of one sample
    points:   in ascending order of the steps
    machines: empty if the history does not name them
    time:     start and end, in seconds since the epoch; None if the history does not give them
    start:    number of steps before the first point
    """

    name: str
    launcher: str
    parameters: int
    instance_count: int
    world_size: int
    device: str
    sample: str
    points: tuple[Point, ...]
    machines: tuple[Machine, ...]
    time: tuple[float, float] | None
    start: int = 0

    @property
    def starts(self) -> list[int]:
        """Number of steps before each point."""
        return [self.start, *(point.step for point in self.points[:-1])]

    @property
    def steps(self) -> int:
        """Number of steps that the points cover."""
        return self.points[-1].step - self.start

    @property
    def samples_per_step(self) -> float:
        """Samples over all ranks, the mean over the steps."""
        counts = (point.samples * (point.step - start) for start, point in zip(self.starts, self.points, strict=True))
        return sum(counts) / self.steps if self.steps else self.points[-1].samples

    def without_warm_up(self, steps: int) -> Training | None:
        """Return the training without the points that cover one of the first steps; None if no point is left."""
        later = [index for index, start in enumerate(self.starts) if start >= steps]
        return replace(self, points=self.points[later[0] :], start=self.starts[later[0]]) if later else None


def hardware(machines: Sequence[Machine], device: str) -> str:
    """Describe the hardware of these machines, as in `8 cores of one machine`."""
    cores, gpus = sum(machine.cores for machine in machines), sum(machine.gpus for machine in machines)
    count = f"{gpus} GPU{'s' * (gpus != 1)} and " if device == "cuda" else ""
    location = "one machine" if len(machines) == 1 else f"{len(machines)} machines"
    return f"{count}{cores} core{'s' * (cores != 1)} of {location}"


def read(file: Path, needed: Collection[str]) -> Training:
    """Return the training that a history describes.

    needed: required keys of the history and its points, besides world_size, step, seconds and samples. Other missing
            keys are 0, NaN or "".

    Raise InputError if the file is not a history, has no point, or lacks a key.
    """
    expected = "the output `history` of a training (docs/how-to/scaling.md)"
    try:
        history = json.loads(file.read_text(encoding="utf-8"))
        points = sorted((_point(each, history, needed) for each in history["points"]), key=attrgetter("step"))
        training = _training(history, tuple(points), needed)
    except OSError as error:
        raise bad_input(str(file), f"cannot be read ({error.strerror})", expected) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise bad_input(str(file), f"is not a history with the compared figures ({error!r})", expected) from None
    if not points:
        raise bad_input(str(file), "has no point", "the history of a training that made at least one step")
    return training


def _point(found: dict[str, Any], history: dict[str, Any], needed: Collection[str]) -> Point:
    seconds = float(found["seconds"])
    point = Point(
        step=int(found["step"]),
        loss=float(_value(found, "loss", math.nan, needed)),
        seconds=seconds,
        samples=float(found["samples"] if "samples" in found else history["samples_per_step"]),
        peak_memory=float(_value(found, "peak_memory", math.nan, needed)),
    )
    if not (0 < seconds < math.inf and 0 < point.samples < math.inf):
        raise ValueError(f"{point.samples:g} samples in {seconds:g} s at step {point.step}")
    return point


def _training(found: dict[str, Any], points: tuple[Point, ...], needed: Collection[str]) -> Training:
    name = str(_value(found, "strategy", "", needed))
    stage = found.get("deepspeed_stage")
    training = Training(
        name=name if stage is None else f"{name} ZeRO {int(stage)}",
        launcher=str(_value(found, "launcher", "", needed)),
        parameters=int(_value(found, "parameters", 0, needed)),
        instance_count=int(_value(found, "instance_count", 1, needed)),
        world_size=int(found["world_size"]),
        device=str(found.get("device", "unknown")),
        sample=str(found.get("sample", "sample")),
        points=points,
        machines=tuple(Machine(**machine) for machine in found.get("machines", ())),
        time=(float(found["started"]), float(found["ended"])) if "started" in found else None,
    )
    if min(training.instance_count, training.world_size) < 1:
        raise ValueError(f"{training.world_size} ranks on {training.instance_count} instances")
    return training


def _value(found: Mapping[str, Any], key: str, default: float | str, needed: Collection[str]) -> Any:
    return found[key] if key in needed else found.get(key, default)
