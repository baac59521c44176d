"""The unigram model: every token as probable as it is frequent, whatever stands before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def perplexity(train: NDArray[np.uint16], validation: NDArray[np.uint16], vocabulary_size: int) -> float:
    """The perplexity of the validation tokens under the frequencies of the training tokens, each counted once more."""
    counts = np.bincount(train, minlength=vocabulary_size) + 1
    surprise = -np.log(counts / counts.sum())
    return float(np.exp(surprise[validation].mean()))
