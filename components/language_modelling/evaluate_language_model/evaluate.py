"""Evaluate a language model on prepared text, on all ranks."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch
from scoring import Scores, score, summary

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks_steps.text.language_model import TOKENIZER, BadModel, LanguageModel, read, vocabulary
from allranks_steps.text.prepared_text import BadData, Description, read_description, read_tokens
from allranks_steps.text.windows import Windows


def evaluate(ranks: runtime.Ranks) -> None:
    args = arguments()
    try:
        description = read_description(args.data)
        tokens = read_tokens(args.data, description, args.split)
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None
    if len(tokens) < 2:
        found = f"{len(tokens)} token(s) in the split {args.split}"
        raise InputError(Problem("input data", found, "at least two", "give more text to prepare_text"))
    model = load(args.model, args.data)
    windows = Windows(tokens, model.shape.max_seq_length)
    batch_size, dtype = args.per_device_eval_batch_size, getattr(torch, args.precision)
    sums = score(model.network.to(ranks.device), windows, batch_size, dtype, ranks)
    if ranks.is_main:
        write(args, description, summary(sums, description.bytes[args.split]), ranks.metrics)


def load(folder: Path, data: Path) -> LanguageModel:
    """Load the model. Raise InputError if there is none, or its tokenizer is not that of the data."""
    try:
        model = read(folder)
    except BadModel as error:
        raise InputError(Problem("input model", str(error))) from None
    known, used = vocabulary(model.tokenizer.to_str()), vocabulary((data / TOKENIZER).read_text(encoding="utf-8"))
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


def write(args: argparse.Namespace, description: Description, scores: Scores, metrics: runtime.Metrics) -> None:
    """Write metrics.json, and log the metrics."""
    content = {"split": args.split, "source": description.source} | asdict(scores)
    names = ("loss", "perplexity", "bits_per_byte", "accuracy")
    logged = {f"{args.split}_{name}": getattr(scores, name) for name in names}
    text = f"{args.split} perplexity {scores.perplexity:.2f} on {scores.count:,} tokens"
    if args.split == "validation":
        unigram = description.unigram_perplexity
        baseline = {"unigram_perplexity": unigram, "times_below_unigram": unigram / scores.perplexity}
        content |= baseline
        logged |= baseline
        text += f", {baseline['times_below_unigram']:.2f} times below a unigram model's {unigram:.2f}"
    args.metrics.mkdir(parents=True, exist_ok=True)
    (args.metrics / "metrics.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    metrics.log(logged, step=0)
    print(text)


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--split", choices=["train", "validation"], default="validation")
    parser.add_argument("--per_device_eval_batch_size", type=int, default=16)
    parser.add_argument("--precision", choices=["float32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--metrics", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    runtime.main(evaluate)
