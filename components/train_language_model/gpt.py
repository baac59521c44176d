"""A small GPT: tokens in, scores for the next token out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """The dimensions of a GPT.

    vocabulary_size: number of tokens in the vocabulary
    block_size:      maximum sequence length
    layers, heads:   number of blocks, and of attention heads in each
    width:           embedding dimension; a multiple of heads
    """

    vocabulary_size: int
    block_size: int
    layers: int
    heads: int
    width: int


class Gpt(nn.Module):
    """A decoder with learned positional embeddings, whose token embedding is also its output layer.

    Tied embeddings alone make an untrained network predict its input token: `predict` maps a token to its successor.
    """

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary_size, shape.width)
        self.positions = nn.Embedding(shape.block_size, shape.width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(shape, dropout) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self.predict = nn.Linear(shape.width, shape.width, bias=False)
        self._initialise(shape)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return scores (batch, length, vocabulary_size). tokens: (batch, length) int64, length at most block_size.

        The scores at a position are those of the next token, and depend only on the tokens up to that position.
        """
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.dropout(self.tokens(tokens) + self.positions(positions))
        for block in self.blocks:
            hidden = block(hidden)
        return functional.linear(self.predict(self.norm(hidden)), self.tokens.weight)

    def _initialise(self, shape: Shape) -> None:
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            # Projections into the residual stream are smaller, so that its variance does not grow with the depth.
            ends_a_branch = name.endswith(("project.weight", "contract.weight"))
            nn.init.normal_(parameter, std=0.02 / (2 * shape.layers) ** 0.5 if ends_a_branch else 0.02)
        # The first steps, which learn token frequencies, would make all small embeddings alike.
        nn.init.normal_(self.tokens.weight, std=shape.width**-0.5)


class Block(nn.Module):
    """Causal self-attention and a feed-forward network, each with a pre-norm and a residual connection."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.heads = shape.heads
        self.attention_norm = nn.LayerNorm(shape.width)
        self.attend = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.project = nn.Linear(shape.width, shape.width, bias=False)
        self.forward_norm = nn.LayerNorm(shape.width)
        self.expand = nn.Linear(shape.width, 4 * shape.width, bias=False)
        self.contract = nn.Linear(4 * shape.width, shape.width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the hidden states after the block, (batch, length, width) like the input."""
        hidden = hidden + self.dropout(self.project(self._attention(self.attention_norm(hidden))))
        inner = functional.gelu(self.expand(self.forward_norm(hidden)))
        added: Tensor = hidden + self.dropout(self.contract(inner))
        return added

    def _attention(self, hidden: Tensor) -> Tensor:
        batch, length, width = hidden.shape
        parts = self.attend(hidden).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, width)


def parameter_count(model: nn.Module) -> int:
    """Return the number of parameters."""
    return sum(parameter.numel() for parameter in model.parameters())
