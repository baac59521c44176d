"""Inside a training process: its ranks, data, checkpoints, metrics, and its end.

    from allranks import runtime

    def train(ranks: runtime.Ranks) -> None:
        ...                                    # an ordinary training loop

    if __name__ == "__main__":
        runtime.main(train)

The same script runs under every launch of the contract, under torchrun, and as one process without any.
"""

from __future__ import annotations

from allranks.runtime.checkpoints import Checkpoints, Stateful
from allranks.runtime.eviction import EVICTED, Evicted
from allranks.runtime.main import main
from allranks.runtime.metrics import Metrics
from allranks.runtime.notes import note
from allranks.runtime.ranks import Ranks, started
from allranks.runtime.sampler import ResumableSampler
from allranks.runtime.staging import stage
from allranks.runtime.strategies import Strategy

__all__ = [
    "EVICTED",
    "Checkpoints",
    "Evicted",
    "Metrics",
    "Ranks",
    "ResumableSampler",
    "Stateful",
    "Strategy",
    "main",
    "note",
    "stage",
    "started",
]
