"""Score a fine-tuned language model on held-out examples, divided over the ranks. Each token is counted once."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

from allranks import runtime
from allranks_steps.finetuning import records, tokens
from allranks_steps.json_files import write_json
from allranks_steps.messages import bad_input
from allranks_steps.text import model_folder
from allranks_steps.text.scoring import score, summarize


def evaluate(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    part = records.read(args.data, "data")
    metrics: dict[str, Any] = {"examples": len(part)} | figures(args.model, "model", part, args, ranks)
    if args.baseline is not None:
        baseline = figures(args.baseline, "baseline", part, args, ranks)
        metrics |= {f"baseline_{name}": value for name, value in baseline.items()}
        metrics["perplexity_reduction"] = 1 - metrics["perplexity"] / baseline["perplexity"]
    if not ranks.is_main:
        return
    write_json(args.metrics / "metrics.json", metrics)
    ranks.metrics.log(metrics, step=0)
    print(", ".join(f"{name} {value:.4g}" for name, value in metrics.items()))


def figures(place: Path, parameter: str, part: Dataset, args: Namespace, ranks: runtime.Ranks) -> dict[str, float]:
    """Return the figures of one model, the same on every rank. A collective. Raise InputError."""
    folder, tokenizer = model_folder.open_causal(place, parameter, args.max_seq_length)
    tokens.set_chat_template(tokenizer, args.chat_template, needed=any(map(tokens.conversational, part.take(1))))
    tokenizing = tokens.Tokenizing(tokenizer, args.max_seq_length, args.completion_only_loss)
    is_preference = tokens.example_columns(part.column_names) == tokens.PREFERENCE
    if is_preference:
        pairs = (tokenizing.preference(record, number) for number, record in enumerate(part))
        examples: Any = [example for pair in pairs for example in pair]
    else:
        examples = records.convert(part, tokenizing, ("input_ids", "labels"))
    model = model_folder.load_causal(folder, getattr(torch, args.precision)).to(ranks.device)
    table = score(model, examples, args.per_device_eval_batch_size, ranks.device)
    if not table[:, 0].any():
        found = f"{args.max_seq_length}, after which no token of any record is scored"
        raise bad_input("input max_seq_length", found, "longer than the prompts", "make it larger")
    if is_preference:
        # The log-probability of each completion: minus its loss.
        margins = table[1::2, 1] - table[0::2, 1]
        return summarize(table[0::2]) | {
            "preference_accuracy": (margins > 0).double().mean().item(),
            "preference_margin": margins.mean().item(),
        }
    return summarize(table)


if __name__ == "__main__":
    runtime.main(evaluate)
