"""Evaluate a language model on prepared text, on all ranks."""

import math
from pathlib import Path
from typing import Any

import torch

from allranks import runtime
from allranks_steps.json_files import write_json
from allranks_steps.messages import bad_input
from allranks_steps.text import model_folder
from allranks_steps.text.prepared_text import read_description, read_tokenizer, read_tokens
from allranks_steps.text.scoring import score, summarize
from allranks_steps.text.windows import Scored


def evaluate(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    description = read_description(args.data)
    tokens = read_tokens(args.data, description, args.split)
    if len(tokens) < 2:
        found = f"{len(tokens)} token(s) in the split {args.split}"
        raise bad_input("input data", found, "at least two", "give more text to prepare_text")
    model = load(args.model, args.data, getattr(torch, args.precision)).to(ranks.device)
    examples = Scored(tokens, model.config.max_position_embeddings)
    table = score(model, examples, args.per_device_eval_batch_size, ranks.device)
    if not ranks.is_main:
        return
    scores = summarize(table)
    # Comparable between tokenizers: the loss of all tokens in bits, per byte of the text in UTF-8.
    scores["bits_per_byte"] = scores["count"] * scores["loss"] / math.log(2) / description.bytes[args.split]
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


def load(folder: Path, data: Path, dtype: torch.dtype) -> Any:
    """Load the model. Raise InputError if it is missing, or its tokenizer differs from that of the data."""
    found, tokenizer = model_folder.open_causal(folder, "model")
    known, used = tokenizer.get_vocab(), read_tokenizer(data).get_vocab()
    if known != used:
        raise bad_input(
            "input model",
            f"a tokenizer of {len(known)} tokens, and another one of {len(used)} in the data",
            "text that was prepared with the model's own tokenizer",
            "give the text that the model was trained on, or its tokenizer.json to prepare_text",
        )
    return model_folder.load_causal(found, dtype)


if __name__ == "__main__":
    runtime.main(evaluate)
