"""Score a language model on tokens, each rank a part of them, and count every token exactly once."""

from __future__ import annotations

import math
from contextlib import nullcontext

import torch
from torch import Tensor
from torch.nn import functional

from allranks import runtime
from allranks_steps.text.gpt import CHUNK_SCORES, Gpt
from allranks_steps.text.token_scores import token_scores
from allranks_steps.text.windows import Windows, divided


def summary(sums: Tensor, text_bytes: int) -> dict[str, float]:
    """Return the metrics for the result of `score`: those of `token_scores`, and bits_per_byte, which is comparable
    between tokenizers: the loss of all tokens in bits, per byte of the text.

    text_bytes: of the scored text in UTF-8
    """
    count, loss, correct = sums.tolist()
    return token_scores(count, loss, correct) | {"bits_per_byte": loss / math.log(2) / text_bytes}


@torch.no_grad()
def score(model: Gpt, windows: Windows, batch_size: int, dtype: torch.dtype, ranks: runtime.Ranks) -> Tensor:
    """Score every token but the first, given the tokens before it in its window, over all ranks. A collective.

    Return the number of scored tokens, their summed loss in nats, and how many of them the model predicts. (3,)
    float64, the same on every rank.

    Windows do not overlap, so the first tokens of a window have little context: the perplexity is an upper bound of the
    model's own.
    """
    sums = torch.zeros(3, dtype=torch.float64, device=ranks.device)
    own = range(ranks.rank, len(windows), ranks.world_size)
    for start in range(0, len(own), batch_size):
        batch = torch.stack([windows[index] for index in own[start : start + batch_size]])
        sums += _sums(model, batch.to(ranks.device), dtype)
    rest = windows.rest()
    if ranks.is_main and len(rest) > 1:
        sums += _sums(model, rest[None].to(ranks.device), dtype)
    return ranks.reduce(sums, "sum").cpu()


def _sums(model: Gpt, batch: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the count, the summed loss and the correct predictions of a batch of windows, (3,) float64."""
    seen, following = divided(batch)
    mixed = nullcontext() if dtype == torch.float32 else torch.autocast(batch.device.type, dtype)
    sums = torch.zeros(3, dtype=torch.float64, device=batch.device)
    with mixed:
        hidden = model.model(seen).flatten(0, 1)
        rows = max(1, CHUNK_SCORES // model.lm_head.out_features)
        for part, targets in zip(torch.split(hidden, rows), torch.split(following.flatten(), rows), strict=True):
            scores = model.lm_head(part).float()
            losses = functional.cross_entropy(scores, targets, reduction="none")
            correct = (scores.argmax(dim=-1) == targets).sum()
            sums += torch.stack((torch.tensor(targets.numel(), device=batch.device), losses.double().sum(), correct))
    return sums
