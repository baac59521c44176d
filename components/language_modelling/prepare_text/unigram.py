"""The unigram model: the probability of a token is its frequency, independent of the context."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def perplexity(train: NDArray[Any], validation: NDArray[Any]) -> float:
    """Return the perplexity of the validation tokens under the training frequencies with add-one smoothing.

    train, validation: how often each token occurs, (vocabulary_size,)
    """
    smoothed = train + 1
    surprise = -np.log(smoothed / smoothed.sum())
    return float(np.exp((surprise * validation).sum() / validation.sum()))
