"""Transformers' Llama with a loss that is computed in chunks, so that the scores of all tokens never exist at once."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import LinearCrossEntropyOptions, functional
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

from allranks.errors import InputError, Problem

CHUNK_SCORES = 1 << 26
"""Scores that the loss computes at once: 256 MiB in float32."""


class Llama(LlamaForCausalLM):  # type: ignore[misc]  # Transformers is untyped here
    """LlamaForCausalLM whose forward method returns the loss if the following tokens are given.

    The initial weights of the layers that end a residual branch are smaller in deeper models, as in GPT-2 (Radford et
    al., 2019, section 2.3). The demo's perplexity after 300 steps is 71 instead of 91.
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__(config)
        std = config.initializer_range / math.sqrt(2 * config.num_hidden_layers)
        for layer in self.model.layers:
            for branch_end in (layer.self_attn.o_proj, layer.mlp.down_proj):
                nn.init.normal_(branch_end.weight, std=std)

    def forward(self, input_ids: Tensor | None = None, following: Tensor | None = None, **options: Any) -> Any:
        """Return what LlamaForCausalLM returns, or the mean cross-entropy of the following tokens, float32.

        input_ids, following: (batch, length) int64
        """
        if following is None:
            return super().forward(input_ids, **options)
        hidden = self.model(input_ids, use_cache=False).last_hidden_state
        return cross_entropy(hidden.flatten(0, 1), self.lm_head.weight, following.flatten())


def cross_entropy(hidden: Tensor, weight: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy of the targets, float32, computed in chunks of CHUNK_SCORES scores.

    hidden: (count, hidden_size); weight: of the output layer, (vocab_size, hidden_size); targets: (count,)
    """
    if torch.is_autocast_enabled(hidden.device.type):  # which does not know the chunked operation
        dtype = torch.get_autocast_dtype(hidden.device.type)
        hidden, weight = hidden.to(dtype), weight.to(dtype)
    chunk = max(1, CHUNK_SCORES // len(weight))
    # Also for what fits at once in 16 bits: the chunked operation computes the softmax in float32.
    chunked = len(hidden) > chunk or hidden.dtype != torch.float32
    options = LinearCrossEntropyOptions(batch_chunk_size=chunk) if chunked else None
    # Not the reduction "mean" or "sum", which torch 2.13 adds up in 16 bits.
    return functional.linear_cross_entropy(hidden, weight, targets, reduction="none", options=options).float().mean()


def configuration(**values: Any) -> LlamaConfig:
    """Return Llama's configuration of these values. Raise InputError if the heads do not fit the hidden size."""
    size, heads = values["hidden_size"], values["num_attention_heads"]
    shared = values.setdefault("num_key_value_heads", heads)
    problems = []
    if size % (2 * heads):
        expected = "heads of an even size: hidden_size a multiple of 2 * num_attention_heads"
        found, fix = f"{heads} heads with a hidden_size of {size}", "change num_attention_heads or hidden_size"
        problems.append(Problem("input num_attention_heads", found, expected, fix))
    if heads % shared:
        found, fix = f"{shared} for {heads} attention heads", "change num_key_value_heads or num_attention_heads"
        problems.append(Problem("input num_key_value_heads", found, "a divisor of num_attention_heads", fix))
    if problems:
        raise InputError.of(problems)
    return LlamaConfig(**values)


def save_network(folder: Path, config: LlamaConfig, weights: Mapping[str, Tensor]) -> None:
    """Write the configuration and the weights, a state dict, as LlamaForCausalLM's `save_pretrained` does."""
    logging.disable_progress_bar()  # which would fill a log
    with torch.device("meta"):
        network = LlamaForCausalLM(config)
    network.save_pretrained(folder, state_dict=dict(weights))
