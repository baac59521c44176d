"""Windows of tokens: input sequences and their targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def count(tokens: NDArray[np.uint16], block_size: int) -> int:
    """Return the number of whole windows in the tokens; each also needs the token after it."""
    return max(0, len(tokens) - 1) // block_size


def batch(tokens: NDArray[np.uint16], indices: Sequence[int], block_size: int) -> tuple[Tensor, Tensor]:
    """Return the tokens of these windows and the token after each, both (len(indices), block_size) int64."""
    windows = np.stack([tokens[index * block_size : (index + 1) * block_size + 1] for index in indices])
    sequences = torch.from_numpy(windows.astype(np.int64))
    return sequences[:, :-1], sequences[:, 1:]
