"""Windows of tokens: input sequences and their targets."""

from collections.abc import Sequence
from typing import Any, Protocol

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
    """A map-style data set of non-overlapping windows of a sequence of tokens.

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


class Scored(Sequence[dict[str, Tensor]]):
    """Sequences of tokens for `scoring.score`, in which each token but the first is scored once.

    length: number of tokens in each but the last one
    """

    def __init__(self, tokens: TokenSequence, length: int) -> None:
        self._tokens, self._step = tokens, max(1, length - 1)

    def __len__(self) -> int:
        return -(-max(0, len(self._tokens) - 1) // self._step)

    def __getitem__(self, number: Any) -> Any:
        start = range(len(self))[number] * self._step
        # The first token is not predicted. It is the last token of the previous sequence.
        ids = torch.from_numpy(self._tokens[start : start + self._step + 1].astype(np.int64))
        return {"input_ids": ids, "labels": ids}


def divided(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the tokens of a batch of windows and the token after each, both (batch, max_seq_length)."""
    return windows[:, :-1], windows[:, 1:]
