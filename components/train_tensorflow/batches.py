"""The images of each step, the same for every number of workers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Weights = NDArray[np.float32]


def steps(length: int, *, batch_size: int, epochs: int, seed: int) -> list[tuple[int, Indices]]:
    """Return every step of a training: its epoch, from 0, and the indices of its images.

    An epoch contains each of `length` images once, in its own order. Its last batch may be smaller.
    """
    result: list[tuple[int, Indices]] = []
    for epoch in range(epochs):
        order = np.random.default_rng((seed, epoch)).permutation(length)
        result += [(epoch, order[start : start + batch_size]) for start in range(0, length, batch_size)]
    return result


def share(indices: Indices, part: int, parts: int) -> tuple[Indices, Weights]:
    """Return one part of a batch and the weights of its images. The parts differ by at most one image.

    An empty part gets an image of another part with weight 0: TensorFlow 2.21 gives a convolution of an empty batch the
    wrong shape if oneDNN computes it ("input depth must be evenly divisible by filter depth"), as it does by default on
    processors with AVX512-VNNI.
    """
    own = np.array_split(indices, parts)[part]
    if len(own):
        return own, np.ones(len(own), np.float32)
    return indices[:1], np.zeros(1, np.float32)
