"""Score examples of a language model on all ranks, each token once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from allranks_steps.text.each_once import each_once
from allranks_steps.text.token_scores import token_scores

IGNORED = -100
"""The label of a token that is not scored, as Transformers' losses have it."""

Record = dict[str, Any]


def score(
    model: Any,
    examples: Sequence[Record],
    batch_size: int,
    device: torch.device,
    after_batch: Callable[[], object] = lambda: None,
) -> Tensor:
    """Return, for each example, its number of scored tokens, their summed loss in nats, and how many of them the model
    predicts: (len(examples), 3) float64 on the CPU, the same on every rank. A collective.

    examples:   input_ids and labels, the same on every rank
    batch_size: number of examples that a rank scores at once
    after_batch: called after each batch, on every rank
    """
    return each_once(model, examples, 3, batch_size, lambda batch: _score_batch(model, batch, device), after_batch)


def summarize(table: Tensor) -> dict[str, float]:
    """Return the `token_scores` of all examples of `score`."""
    return token_scores(*table.sum(dim=0).tolist())


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
