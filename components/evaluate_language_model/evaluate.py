"""Score a language model on prepared text, each rank a part of it, and count every token exactly once."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
import windows
from language_model import BadModel, LanguageModel, read
from numpy.typing import NDArray
from prepared_text import BadData, Description, read_description, read_tokens
from torch import nn
from torch.nn import functional

from allranks import runtime
from allranks.errors import InputError, Problem


@dataclass(frozen=True)
class Scores:
    """Metrics over the tokens. loss: nats per token; accuracy: the fraction of tokens that were predicted correctly."""

    count: int
    loss: float
    perplexity: float
    accuracy: float


def evaluate(ranks: runtime.Ranks) -> None:
    args = arguments()
    description, tokens = data(args.data, args.split)
    model = load(args.model, description)
    scores = score(model.network.to(ranks.device), tokens, model.shape.block_size, args.batch_size, ranks)
    if not ranks.is_main:
        return
    metrics = {"split": args.split, "source": description.source} | asdict(scores)
    figures = {f"{args.split}_{name}": getattr(scores, name) for name in ("loss", "perplexity", "accuracy")}
    text = f"{args.split} perplexity {scores.perplexity:.2f} on {scores.count:,} tokens"
    if args.split == "validation":
        times = description.unigram_perplexity / scores.perplexity
        baseline = {"unigram_perplexity": description.unigram_perplexity, "times_below_unigram": times}
        metrics |= baseline
        figures |= baseline
        text += f", {times:.2f} times below a unigram model's {description.unigram_perplexity:.2f}"
    args.metrics.mkdir(parents=True, exist_ok=True)
    (args.metrics / "metrics.json").write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    ranks.metrics.log(figures, step=0)
    print(text)


def data(source: Path, split: str) -> tuple[Description, NDArray[np.uint16]]:
    """Return the description and the split's tokens, from a copy that the ranks of an instance share."""
    try:
        folder = runtime.stage(source)
        return read_description(folder), read_tokens(folder, split)
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None


def load(folder: Path, description: Description) -> LanguageModel:
    """Load the model. Raise InputError if there is none, or its vocabulary is not that of the data."""
    try:
        model = read(folder)
    except BadModel as error:
        raise InputError(Problem("input model", str(error))) from None
    known, used = model.shape.vocabulary_size, description.vocabulary_size
    if known != used:
        raise InputError(
            Problem(
                where="input model",
                found=f"a vocabulary of {known} tokens, and {used} in the data",
                expected="text that was prepared with the model's own tokenizer",
                fix="give the output of prepare_text that the model was trained on",
            )
        )
    return model


@torch.no_grad()
def score(
    network: nn.Module, tokens: NDArray[np.uint16], block_size: int, batch_size: int, ranks: runtime.Ranks
) -> Scores:
    """Score every token but the first, given the tokens before it in its window, over all ranks. A collective.

    Windows do not overlap, so the first tokens of a window have little context: the perplexity is an upper bound of the
    model's own.
    """
    window_count = windows.count(tokens, block_size)
    sums = torch.zeros(3, dtype=torch.float64)
    own = range(ranks.rank, window_count, ranks.world_size)
    for start in range(0, len(own), batch_size):
        sums += _sums(network, *windows.batch(tokens, own[start : start + batch_size], block_size), ranks.device)
    rest = torch.from_numpy(tokens[window_count * block_size :].astype(np.int64))
    if ranks.is_main and len(rest) > 1:
        sums += _sums(network, rest[None, :-1], rest[None, 1:], ranks.device)
    count, loss, correct = ranks.reduce(sums).tolist()
    if not count:
        found = f"{len(tokens)} token(s) in the split"
        raise InputError(Problem("input data", found, "at least two", "give more text to prepare_text"))
    return Scores(int(count), loss / count, math.exp(loss / count), correct / count)


def _sums(network: nn.Module, seen: torch.Tensor, following: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return the count, the summed loss and the correct predictions of these tokens, float64."""
    scores, targets = network(seen.to(device)).flatten(0, 1), following.to(device).flatten()
    loss = functional.cross_entropy(scores, targets, reduction="sum")
    correct = (scores.argmax(dim=1) == targets).sum()
    return torch.tensor([targets.numel(), loss.item(), correct.item()], dtype=torch.float64)


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--split", choices=["train", "validation"], default="validation")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--metrics", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    runtime.main(evaluate)
