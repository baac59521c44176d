"""What a TensorFlow training is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allranks.runtime.metrics import Metrics


@dataclass(frozen=True)
class Training:
    """This process among those of the training.

    rank, world_size: its number among the tasks that train, and how many there are. Under parameter servers the chief
                      runs the loop for all of them: it is rank 0, and world_size counts the workers
    role:             worker, chief or evaluator; servers never get here
    strategy:         the tf.distribute strategy; variables are made in its scope
    coordinator:      the ClusterCoordinator that schedules steps on the workers; None without parameter servers
    metrics:          where the chief's figures go
    """

    rank: int
    world_size: int
    role: str
    is_main: bool
    strategy: Any
    coordinator: Any
    metrics: Metrics
