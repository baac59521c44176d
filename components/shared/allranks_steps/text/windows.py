"""Windows of tokens: input sequences and their targets."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset


class TokenSequence(Protocol):
    """Tokens of a split, such as `prepared_text.Tokens`."""

    def __len__(self) -> int: ...

    def __getitem__(self, span: slice) -> NDArray[np.unsignedinteger]: ...


class Windows(Dataset[Tensor]):
    """A map-style data set of the windows in a sequence of tokens, which do not overlap.

    windows[index]: the window's tokens and the one after it, (max_seq_length + 1,) int64
    """

    def __init__(self, tokens: TokenSequence, max_seq_length: int) -> None:
        self.tokens, self.max_seq_length = tokens, max_seq_length

    def __len__(self) -> int:
        """Return the number of whole windows; each also needs the token after it."""
        return max(0, len(self.tokens) - 1) // self.max_seq_length

    def __getitem__(self, index: int) -> Tensor:
        start = index * self.max_seq_length
        return torch.from_numpy(self.tokens[start : start + self.max_seq_length + 1].astype(np.int64))

    def rest(self) -> Tensor:
        """Return the tokens after the last window, with the one before them, (count,) int64; a single one if there are
        none."""
        return torch.from_numpy(self.tokens[len(self) * self.max_seq_length : len(self.tokens)].astype(np.int64))


def divided(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the tokens of a batch of windows and the token after each, both (batch, max_seq_length)."""
    return windows[:, :-1], windows[:, 1:]
