"""Compute figures of examples on all ranks: each example once, also where a forward pass is a collective."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, distributed

Record = dict[str, Any]


@torch.no_grad()
def each_once(
    model: Any,
    examples: Sequence[Record],
    width: int,
    batch_size: int,
    compute: Callable[[list[Record]], Tensor],
    after_batch: Callable[[], object] = lambda: None,
) -> Tensor:
    """Return the figures of all examples, (len(examples), width) float64 on the CPU, on every rank. A collective.

    model:      is in evaluation mode meanwhile
    examples:   with input_ids; the same on every rank
    batch_size: number of examples that a rank computes at once
    compute:    returns the figures of a batch, (len(batch), width)
    after_batch: called after each batch, on every rank

    Every rank makes the same number of calls, which sharded models require.
    """
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    # Examples of one batch are of similar length, so that there is little padding.
    lengths = [len(example["input_ids"]) for example in examples]
    order = sorted(range(len(examples)), key=lengths.__getitem__)
    own = order[rank::world_size]
    table = torch.zeros(len(examples), width, dtype=torch.float64)
    was_training = model.training
    model.eval()
    for start in range(0, math.ceil(len(examples) / world_size), batch_size):
        indices = own[start : start + batch_size]
        # A rank that has no example left computes one whose figures are not used.
        figures = compute([examples[index] for index in indices or order[:1]])
        if indices:
            table[indices] = figures.double().cpu()
        after_batch()
    model.train(was_training)
    distributed.all_reduce(table)
    return table
