"""A GPT: a decoder with rotary positions, RMSNorm, SwiGLU and grouped-query attention.

Structure and parameter names are those of Llama in Transformers (`LlamaForCausalLM`), so that a saved model loads
there. The blocks follow Touvron et al., "Llama 2", arXiv:2307.09288, section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import LinearCrossEntropyOptions, functional

INITIAL_STD = 0.02
"""Standard deviation of the initial weights, as in GPT-2 and Llama."""

CHUNK_SCORES = 1 << 26
"""Scores that the loss computes at once: 256 MiB in float32."""


@dataclass(frozen=True)
class Shape:
    """The dimensions of a GPT.

    vocabulary_size:      number of tokens in the vocabulary
    max_seq_length:       maximum sequence length that the model is trained with
    hidden_size:          embedding dimension; num_attention_heads times an even number
    num_hidden_layers:    number of blocks
    num_attention_heads:  attention heads of a block
    num_key_value_heads:  heads of keys and values; a divisor of num_attention_heads
    intermediate_size:    inner dimension of the feed-forward network
    tie_word_embeddings:  whether the token embedding is also the output layer
    rope_theta:           base of the rotary positions' wavelengths
    """

    vocabulary_size: int
    max_seq_length: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    intermediate_size: int
    tie_word_embeddings: bool = False
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-5

    @property
    def head_size(self) -> int:
        """Dimension of an attention head."""
        return self.hidden_size // self.num_attention_heads


class Gpt(nn.Module):
    """Tokens in; scores of the next token, or the loss of given ones, out."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.model = Decoder(shape)
        self.lm_head = Head(shape.hidden_size, shape.vocabulary_size)
        if shape.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        self._initialise(shape)

    def forward(self, tokens: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return scores (batch, length, vocabulary_size), or the mean cross-entropy of the targets, float32.

        The scores at a position are those of the next token, and depend only on the tokens up to that position.

        tokens, targets: (batch, length) int64
        """
        scores_or_loss: Tensor = self.lm_head(self.model(tokens), targets)
        return scores_or_loss

    def _initialise(self, shape: Shape) -> None:
        for name, parameter in self.named_parameters():
            if parameter.dim() < 2:
                continue
            # Projections into the residual stream are smaller, so that its variance does not grow with the depth.
            ends_a_branch = name.endswith(("o_proj.weight", "down_proj.weight"))
            scale = (2 * shape.num_hidden_layers) ** -0.5 if ends_a_branch else 1.0
            nn.init.normal_(parameter, std=INITIAL_STD * scale)


class Decoder(nn.Module):
    """Tokens to hidden states."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary_size, shape.hidden_size)
        self.layers = nn.ModuleList(Block(shape) for _ in range(shape.num_hidden_layers))
        self.norm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self._head_size, self._rope_theta = shape.head_size, shape.rope_theta

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the hidden states (batch, length, hidden_size). tokens: (batch, length) int64."""
        hidden = self.embed_tokens(tokens)
        rotation = rotary_rotation(tokens.shape[1], self._head_size, self._rope_theta, tokens.device)
        for block in self.layers:
            hidden = block(hidden, rotation)
        normed: Tensor = self.norm(hidden)
        return normed


class Block(nn.Module):
    """Causal self-attention and a feed-forward network, each with a pre-norm and a residual connection."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.mlp = FeedForward(shape)

    def forward(self, hidden: Tensor, rotation: Tensor) -> Tensor:
        """Return the hidden states after the block, (batch, length, hidden_size) like the input."""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), rotation)
        added: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return added


class Attention(nn.Module):
    """Causal self-attention, in which groups of heads share their keys and values."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._head_size = shape.head_size
        self._grouped = shape.num_key_value_heads != shape.num_attention_heads
        shared = shape.num_key_value_heads * shape.head_size
        self.q_proj = nn.Linear(shape.hidden_size, shape.hidden_size, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, shared, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, shared, bias=False)
        self.o_proj = nn.Linear(shape.hidden_size, shape.hidden_size, bias=False)

    def forward(self, hidden: Tensor, rotation: Tensor) -> Tensor:
        """Return (batch, length, hidden_size) like the input. rotation: of `rotary_rotation`."""
        query, key, value = (
            projection(hidden).unflatten(-1, (-1, self._head_size)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = functional.scaled_dot_product_attention(
            rotated(query, rotation), rotated(key, rotation), value, is_causal=True, enable_gqa=self._grouped
        )
        projected: Tensor = self.o_proj(mixed.transpose(1, 2).flatten(2))
        return projected


class FeedForward(nn.Module):
    """SwiGLU (Shazeer, arXiv:2002.05202)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return (batch, length, hidden_size) like the input."""
        projected: Tensor = self.down_proj(functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden))
        return projected


class Head(nn.Linear):
    """The output layer, which can compute the loss in chunks: the scores of a large vocabulary never exist at once."""

    def __init__(self, hidden_size: int, vocabulary_size: int) -> None:
        super().__init__(hidden_size, vocabulary_size, bias=False)

    def forward(self, hidden: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return scores (batch, length, vocabulary_size), or the mean cross-entropy of the targets, float32."""
        if targets is None:
            return super().forward(hidden)
        hidden, weight = hidden.flatten(0, 1), self.weight
        if torch.is_autocast_enabled(hidden.device.type):  # which does not know the chunked operation
            dtype = torch.get_autocast_dtype(hidden.device.type)
            hidden, weight = hidden.to(dtype), weight.to(dtype)
        chunk = max(1, CHUNK_SCORES // len(weight))
        # Also for what fits at once in 16 bits: the chunked operation computes the softmax in float32.
        chunked = len(hidden) > chunk or hidden.dtype != torch.float32
        losses = functional.linear_cross_entropy(
            hidden,
            weight,
            targets.flatten(),
            # Not "mean" or "sum", which torch 2.13 adds up in 16 bits.
            reduction="none",
            options=LinearCrossEntropyOptions(batch_chunk_size=chunk) if chunked else None,
        )
        return losses.float().mean()


def rotary_rotation(length: int, head_size: int, theta: float, device: torch.device) -> Tensor:
    """Return cosines and sines of rotary positions (Su et al., arXiv:2104.09864), (2, length, head_size) float32.

    They are computed in every forward pass: a buffer would have to be filled again after a construction on the meta
    device, and be kept out of a conversion to 16 bits.
    """
    frequencies = theta ** -(torch.arange(0, head_size, 2, device=device) / head_size)
    angles = torch.outer(torch.arange(length, device=device), frequencies).repeat(1, 2)
    return torch.stack((angles.cos(), angles.sin()))


def rotated(vectors: Tensor, rotation: Tensor) -> Tensor:
    """Rotate queries or keys (batch, heads, length, head_size) by their positions. Dimension i is paired with dimension
    i + head_size / 2, as in Transformers."""
    cosine, sine = rotation.to(vectors.dtype)
    first, second = vectors.chunk(2, dim=-1)
    result: Tensor = vectors * cosine + torch.cat((-second, first), dim=-1) * sine
    return result


def parameter_count(model: nn.Module) -> int:
    """Return the number of parameters."""
    return sum(parameter.numel() for parameter in model.parameters())
