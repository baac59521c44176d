"""Score examples on all ranks, each once, also if a forward pass is a collective."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn import functional

IGNORED = -100
"""The label of a token that is not scored, as Transformers' losses have it."""

Record = dict[str, Any]


@torch.no_grad()
def score_batches(
    model: Any,
    examples: Sequence[Record],
    width: int,
    batch_size: int,
    compute: Callable[[list[Record]], Tensor],
    after_batch: Callable[[], object] = lambda: None,
) -> Tensor:
    """Return the figures of all examples, (len(examples), width) float64 on the CPU, on every rank. A collective.

    model:      is set to evaluation mode during the call
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
    return score_batches(model, examples, 3, batch_size, lambda batch: _score_batch(model, batch, device), after_batch)


def summarize(table: Tensor) -> dict[str, float]:
    """Return count, the number of scored tokens of all examples of `score`; loss, in nats per token; perplexity, its
    exponential; accuracy, the fraction of tokens that the model predicts."""
    count, loss, correct = table.sum(dim=0).tolist()
    mean = loss / max(count, 1)
    # Above 700 nats a token the exponential is not a float.
    perplexity = math.exp(mean) if mean < 700 else math.inf
    return {"count": int(count), "loss": mean, "perplexity": perplexity, "accuracy": correct / max(count, 1)}


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
