"""The figures of a training, as compare_trainings and compare_scaling read them."""

from __future__ import annotations

import json
import os
import resource
import socket
import time
from pathlib import Path
from typing import Any


class History:
    """The points of a loss curve. samples: images of a step, over all replicas"""

    def __init__(self, points: list[dict[str, float]], *, step: int, samples: int) -> None:
        self.points = points
        self._samples = samples
        self._started = time.time()
        self._since = (step, time.perf_counter())

    def add(self, step: int, loss: float) -> dict[str, float]:
        """Add a point, and return it. loss: the mean over the step's images, before the weights change"""
        before, clock = self._since
        self._since = (step, time.perf_counter())
        point = {
            "step": step,
            "loss": loss,
            "seconds": (self._since[1] - clock) / max(1, step - before),
            "samples": self._samples,
            "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10,
        }
        self.points.append(point)
        return point

    def pause(self, step: int) -> None:
        """Leave out the time since the last point, in which the training did something else."""
        self._since = (step, time.perf_counter())

    def write(self, file: Path, **about: Any) -> None:
        """Write the points and other facts about the training as JSON."""
        # The instances may share a machine, so that only a measurement with one of them names it.
        machine = [{"name": socket.gethostname(), "cores": len(os.sched_getaffinity(0)), "gpus": 0}]
        content = about | {
            "sample": "image",
            "tokens_per_step": self._samples,
            "machines": machine if about.get("instance_count") == 1 else [],
            "started": self._started,
            "ended": time.time(),
            "points": self.points,
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
