"""Record the figures of a training, and write them to a file that compare_trainings and compare_scaling read."""

import resource
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from allranks_steps.json_files import write_json


@dataclass(frozen=True)
class Point:
    """Figures at a step.

    loss:        the mean over the step's samples, before the weights are updated
    seconds:     per step, the mean since the previous point, without evaluations and checkpoints
    samples:     samples per step over all ranks, the mean since the previous point
    peak_memory: MiB
    cpu_seconds: per step, of the rank that needs most; None if it is not measured
    """

    step: int
    loss: float
    seconds: float
    samples: float
    peak_memory: float
    cpu_seconds: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """The mean loss over the validation data after a step."""

    step: int
    loss: float


class History:
    """The points of a training. Checkpoints include them, so that a resumed training's history is complete.

    sample: name of one sample, such as "image" or "token"
    """

    def __init__(self, sample: str) -> None:
        self.sample = sample
        self._points: list[Point] = []
        self._evaluations: list[Evaluation] = []
        self._started = time.time()
        self._steps = 0
        self._samples = 0.0
        self.restart()

    def restart(self) -> None:
        """Start the clock of the next point now."""
        self._since, self._paused = time.perf_counter(), 0.0

    def count(self, samples: float) -> None:
        """Count the samples of a step over all ranks."""
        self._steps += 1
        self._samples += samples

    def add(self, step: int, loss: float, peak_memory: float, cpu_seconds: float | None = None) -> Point:
        """Add a point for the steps since the last one, and return it."""
        now = time.perf_counter()
        seconds = (now - self._since - self._paused) / self._steps
        point = Point(step, loss, seconds, self._samples / self._steps, peak_memory, cpu_seconds)
        self._points.append(point)
        self._steps, self._samples = 0, 0.0
        self._since, self._paused = now, 0.0
        return point

    def add_evaluation(self, step: int, loss: float) -> None:
        """Add an evaluation."""
        self._evaluations.append(Evaluation(step, loss))

    def has_evaluation(self, step: int) -> bool:
        """Return whether there is an evaluation after this step."""
        return any(evaluation.step == step for evaluation in self._evaluations)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Context manager whose duration does not count for a step."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self._paused += time.perf_counter() - started

    def state_dict(self) -> dict[str, Any]:
        """Return the points and evaluations."""
        points = [{name: value for name, value in asdict(point).items() if value is not None} for point in self._points]
        return {"points": points, "evaluations": list(map(asdict, self._evaluations))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the points and evaluations."""
        self._points = [Point(**point) for point in state["points"]]
        self._evaluations = [Evaluation(**evaluation) for evaluation in state.get("evaluations", ())]

    def write(self, file: Path, about: Mapping[str, Any]) -> None:
        """Write the points, the evaluations and the unit of the samples, and other facts about the training, as JSON.

        about: further keys. The reader (`trainings`) needs `strategy`, `launcher`, `world_size`, `instance_count` and
               `parameters`.
        """
        content = {"started": self._started, "ended": time.time(), **about, "sample": self.sample, **self.state_dict()}
        write_json(file, content)


def describe(args: Namespace, ranks: Any, sample: str, **figures: int) -> dict[str, Any]:
    """Log the parameters of the training, and return the same facts for its history.

    sample:  name of one sample
    figures: parameters, their number; samples_per_step, over all ranks; and others
    """
    about = {
        "strategy": args.strategy,
        "deepspeed_stage": args.deepspeed_stage if args.strategy == "deepspeed" else None,
        "launcher": ranks.launcher,
        "world_size": ranks.world_size,
        "sample": sample,
        **figures,
    }
    ranks.metrics.log_params(about | {name: value for name, value in vars(args).items() if not isinstance(value, Path)})
    return about


def peak_memory(device: Any = None) -> float:
    """Return this process's peak memory in MiB: allocated on its GPU, or of the CPU process.

    device: torch's device; None for the CPU
    """
    if device is not None and device.type == "cuda":
        import torch

        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
