"""Score a text classifier on labelled texts, each rank a part of them, and count each text once."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from allranks import runtime
from allranks_steps.finetuning import classified_texts, classifier, records
from allranks_steps.finetuning.base_model import check_fit, find, read_config, read_tokenizer
from allranks_steps.finetuning.classified_texts import Columns
from allranks_steps.finetuning.classifier_scores import confusion, metrics, predict


def evaluate(ranks: runtime.Ranks) -> None:
    args = arguments()
    part = records.read(args.data, "data")
    columns = Columns(args.text_column, args.text_pair_column, args.label_column)
    classified_texts.check(part, columns, "data")
    folder = find(args.model, "model")
    config = read_config(folder)
    tokenizer = read_tokenizer(folder)
    check_fit(folder, config, tokenizer, args.max_seq_length)
    model = classifier.load(folder, tokenizer.pad_token_id).to(ranks.device)
    is_regression = model.config.num_labels == 1
    names = None if is_regression else [model.config.id2label[number] for number in range(model.config.num_labels)]
    examples = classified_texts.tokenize(part, columns, tokenizer, args.max_seq_length, names, "data")
    table = predict(model, examples, args.per_device_eval_batch_size, tokenizer, ranks.device)
    if not ranks.is_main:
        return
    labels = examples["labels"]
    found = metrics(table, labels, regression=is_regression)
    args.metrics.mkdir(parents=True, exist_ok=True)
    (args.metrics / "metrics.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    ranks.metrics.log(found, step=0)
    if names is not None:
        matrix = confusion(table, labels, names)
        (args.metrics / "confusion_matrix.json").write_text(json.dumps(matrix, indent=2) + "\n", encoding="utf-8")
        ranks.metrics.log_dict(matrix, "confusion_matrix.json")
    print(", ".join(f"{name} {value:.4g}" for name, value in found.items()))


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--text_column", default="text")
    parser.add_argument("--text_pair_column", default="")
    parser.add_argument("--label_column", default="label")
    parser.add_argument("--max_seq_length", type=int, default=128)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=32)
    parser.add_argument("--metrics", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    runtime.main(evaluate)
