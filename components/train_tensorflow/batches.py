"""Which images each step trains on: the same for every number of workers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Weights = NDArray[np.float32]


def steps(length: int, *, batch_size: int, epochs: int, seed: int) -> list[tuple[int, Indices]]:
    """Every step of a training: its epoch, from 0, and the indices of its images.

    An epoch sees every one of `length` images once, in an order of its own. Its last batch may be smaller.
    """
    found: list[tuple[int, Indices]] = []
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(length)
        found += [(epoch, order[start : start + batch_size]) for start in range(0, length, batch_size)]
    return found


def share(indices: Indices, part: int, parts: int) -> tuple[Indices, Weights]:
    """One part of a batch, and what each of its images counts, of parts that differ by at most one image.

    A part that none is left for has one image of another's that counts 0: TensorFlow 2.21 gives a convolution of no
    images the wrong shape where oneDNN computes it ("input depth must be evenly divisible by filter depth"), as it does
    by default on processors with AVX512-VNNI.
    """
    own = np.array_split(indices, parts)[part]
    if len(own):
        return own, np.ones(len(own), np.float32)
    return indices[:1], np.zeros(1, np.float32)
