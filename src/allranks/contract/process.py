"""One process of a job, as the platform starts it."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.contract.layout import Layout


@dataclass(frozen=True)
class Process:
    """A process that the platform starts.

    rank:          its number among all that the platform starts, from 0
    local_rank:    its number within its instance
    instance_rank: the instance that it runs on
    role:          "worker" everywhere but under TensorFlow, which also has "ps"
    """

    rank: int
    local_rank: int
    instance_rank: int
    role: str = "worker"


def workers(layout: Layout) -> tuple[Process, ...]:
    """The processes of a layout in the order of their ranks."""
    return tuple(
        Process(rank, layout.local_rank(rank), layout.instance_rank(rank)) for rank in range(layout.world_size)
    )
