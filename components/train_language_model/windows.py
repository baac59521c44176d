"""Windows of tokens: what a model sees at once, and what it is to say of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def count(tokens: NDArray[np.uint16], block_size: int) -> int:
    """The whole windows in the tokens; each needs the token after it as well."""
    return max(0, len(tokens) - 1) // block_size


def batch(tokens: NDArray[np.uint16], indices: Sequence[int], block_size: int) -> tuple[Tensor, Tensor]:
    """What is seen at these windows and what follows each token, both (len(indices), block_size) int64."""
    windows = np.stack([tokens[index * block_size : (index + 1) * block_size + 1] for index in indices])
    whole = torch.from_numpy(windows.astype(np.int64))
    return whole[:, :-1], whole[:, 1:]
