"""Evaluate a language model on prepared text, on all ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from scoring import score, summary

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks_steps.json_files import write_json
from allranks_steps.text.language_model import BadModel, LanguageModel, read, vocabulary
from allranks_steps.text.prepared_text import read_description, read_tokenizer, read_tokens
from allranks_steps.text.windows import Windows


def evaluate(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    description = read_description(args.data)
    tokens = read_tokens(args.data, description, args.split)
    if len(tokens) < 2:
        found = f"{len(tokens)} token(s) in the split {args.split}"
        raise InputError(Problem("input data", found, "at least two", "give more text to prepare_text"))
    model = load(args.model, args.data)
    windows = Windows(tokens, model.shape.max_seq_length)
    batch_size, dtype = args.per_device_eval_batch_size, getattr(torch, args.precision)
    sums = score(model.network.to(ranks.device), windows, batch_size, dtype, ranks)
    if not ranks.is_main:
        return
    scores = summary(sums, description.bytes[args.split])
    content: dict[str, Any] = {"split": args.split, "source": description.source} | scores
    logged = {f"{args.split}_{name}": value for name, value in scores.items() if name != "count"}
    text = f"{args.split} perplexity {scores['perplexity']:.2f} on {scores['count']:,} tokens"
    if args.split == "validation":
        unigram = description.unigram_perplexity
        baseline = {"unigram_perplexity": unigram, "times_below_unigram": unigram / scores["perplexity"]}
        content |= baseline
        logged |= baseline
        text += f", {baseline['times_below_unigram']:.2f} times below a unigram model's {unigram:.2f}"
    write_json(args.metrics / "metrics.json", content)
    ranks.metrics.log(logged, step=0)
    print(text)


def load(folder: Path, data: Path) -> LanguageModel:
    """Load the model. Raise InputError if there is none, or its tokenizer is not that of the data."""
    try:
        model = read(folder)
    except BadModel as error:
        raise InputError(Problem("input model", str(error))) from None
    known, used = vocabulary(model.tokenizer.to_str()), vocabulary(read_tokenizer(data))
    if known != used:
        raise InputError(
            Problem(
                where="input model",
                found=f"a tokenizer of {len(known)} tokens, and another one of {len(used)} in the data",
                expected="text that was prepared with the model's own tokenizer",
                fix="give the text that the model was trained on, or its tokenizer.json to prepare_text",
            )
        )
    return model


if __name__ == "__main__":
    runtime.main(evaluate)
