"""The argument of a TensorFlow training function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allranks.runtime.metrics.metrics import Metrics


@dataclass(frozen=True)
class Training:
    """The task of this process, and the objects that it trains with.

    rank, world_size: number of this task among the tasks that train, and number of those tasks. With parameter servers,
                      the chief runs the loop for all of them: it is rank 0, and world_size is the number of workers
    role:             worker, chief or evaluator; a parameter server does not call the training function
    strategy:         the tf.distribute strategy; create variables in its scope
    coordinator:      the ClusterCoordinator that schedules steps on the workers; None without parameter servers
    metrics:          logs the chief's metrics
    """

    rank: int
    world_size: int
    role: str
    is_main: bool
    strategy: Any
    coordinator: Any
    metrics: Metrics
