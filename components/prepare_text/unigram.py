"""The unigram model: the probability of a token is its frequency, independent of the context."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def perplexity(train: NDArray[np.uint16], validation: NDArray[np.uint16], vocabulary_size: int) -> float:
    """Return the perplexity of the validation tokens under the training frequencies with add-one smoothing."""
    counts = np.bincount(train, minlength=vocabulary_size) + 1
    surprise = -np.log(counts / counts.sum())
    return float(np.exp(surprise[validation].mean()))
