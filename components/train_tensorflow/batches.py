"""Which images each step trains on: the same for every number of workers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def steps(length: int, *, batch_size: int, epochs: int, seed: int) -> list[tuple[int, Indices]]:
    """Every step of a training: its epoch, from 0, and the indices of its images.

    An epoch sees every one of `length` images once, in an order of its own. Its last batch may be smaller.
    """
    found: list[tuple[int, Indices]] = []
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(length)
        found += [(epoch, order[start : start + batch_size]) for start in range(0, length, batch_size)]
    return found


def share(indices: Indices, part: int, parts: int) -> Indices:
    """One part of a batch, of parts that differ by at most one image. It may be empty."""
    return np.array_split(indices, parts)[part]
