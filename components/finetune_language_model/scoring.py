"""Score examples on all ranks: each example once, also under strategies whose forward pass is a collective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tokens import IGNORED, Record
from torch import Tensor, distributed
from torch.nn import functional


@dataclass(frozen=True)
class Scores:
    """Figures over all scored tokens.

    count:      number of scored tokens
    examples:   number of examples
    loss:       nats per token
    perplexity: its exponential
    accuracy:   fraction of tokens to which the model gave the highest probability
    """

    count: int
    examples: int
    loss: float
    perplexity: float
    accuracy: float


@torch.no_grad()
def score(model: Any, examples: Sequence[Record], batch_size: int, device: torch.device) -> Tensor:
    """Return, for each example, its number of scored tokens, their summed loss in nats, and how many of them the model
    predicts: (len(examples), 3) float64 on the CPU, the same on every rank. A collective.

    examples:   input_ids and labels, the same on every rank
    batch_size: number of examples that a rank scores at once

    Every rank makes the same number of forward passes, which sharded models require.
    """
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    # Examples of one batch are of similar length, so that there is little padding.
    order = sorted(range(len(examples)), key=lambda index: len(examples[index]["input_ids"]))
    own = order[rank::world_size]
    table = torch.zeros(len(examples), 3, dtype=torch.float64)
    most = math.ceil(len(examples) / world_size)
    was_training = model.training
    model.eval()
    for start in range(0, most, batch_size):
        indices = own[start : start + batch_size]
        batch = [examples[index] for index in indices]
        # A rank without an example of its own computes one whose result is not used.
        results = _score_batch(model, batch or [examples[order[0]]], device)
        if indices:
            table[indices] = results
    model.train(was_training)
    distributed.all_reduce(table)
    return table


def summarize(table: Tensor) -> Scores:
    """Return the figures over all examples of `score`."""
    count, loss, correct = table.sum(dim=0).tolist()
    mean = loss / max(count, 1)
    # Above 700 nats a token the exponential is no float.
    perplexity = math.exp(mean) if mean < 700 else math.inf
    return Scores(int(count), len(table), mean, perplexity, correct / max(count, 1))


def _score_batch(model: Any, batch: Sequence[Record], device: torch.device) -> Tensor:
    length = max(len(example["input_ids"]) for example in batch)
    ids = torch.zeros(len(batch), length, dtype=torch.long)
    labels = torch.full((len(batch), length), IGNORED)
    mask = torch.zeros(len(batch), length, dtype=torch.long)
    for row, example in enumerate(batch):
        end = len(example["input_ids"])
        ids[row, :end] = torch.as_tensor(example["input_ids"])
        labels[row, :end] = torch.as_tensor(example["labels"])
        mask[row, :end] = 1
    logits = model(input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False).logits
    # One example at a time: float32 logits of a whole batch are large.
    return torch.stack(
        [_score_one(logits[row, :-1], labels[row, 1:].to(logits.device)) for row in range(len(batch))]
    ).cpu()


def _score_one(logits: Tensor, targets: Tensor) -> Tensor:
    scored = targets != IGNORED
    logits, targets = logits[scored].float(), targets[scored]
    loss = functional.cross_entropy(logits, targets, reduction="sum").double()
    correct = (logits.argmax(dim=-1) == targets).sum().double()
    return torch.stack([scored.sum().double(), loss, correct])
