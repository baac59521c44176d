"""Load the model to fine-tune from a folder, and make its training examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from texts import Texts
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from allranks.errors import InputError, Problem

TASKS = ("causal", "classification")

Example = dict[str, torch.Tensor]
"""input_ids, attention_mask and labels, each of one example."""


def load(folder: Path, task: str, texts: Texts) -> tuple[Any, Any]:
    """Load a model and its tokenizer as written by `save_pretrained`, without contacting a hub.

    causal continues texts; classification assigns each text one of the labels, in alphabetical order. Raise InputError
    if the folder holds no such model, or the texts have fewer than two labels to classify.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        if task == "causal":
            model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
        else:
            names = label_names(texts)
            model = AutoModelForSequenceClassification.from_pretrained(
                folder,
                local_files_only=True,
                num_labels=len(names),
                id2label=dict(enumerate(names)),
                label2id={name: number for number, name in enumerate(names)},
            )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            Problem(
                where=f"input model ({folder})",
                found=" ".join(str(error).split())[:300],
                expected=f"a folder with a model for the task {task} and its tokenizer, as save_pretrained writes them",
                fix="give such a folder",
            )
        ) from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    return model, tokenizer


def label_names(texts: Texts) -> list[str]:
    """Return the distinct labels, sorted. Raise InputError if there are fewer than two."""
    names = sorted(set(texts.labels or ()))
    if len(names) < 2:
        found = f"{len(names)} different labels"
        raise InputError(Problem("input data", found, "at least 2 to classify", 'give .jsonl lines with a "label"'))
    return names


def examples(tokenizer: Any, task: str, texts: Texts, length: int) -> list[Example]:
    """Return the training examples, each of `length` tokens.

    causal: all texts concatenated and cut into pieces, without the remainder; classification: each text, truncated or
    padded. Raise InputError if the texts have fewer tokens than one piece.
    """
    if task == "causal":
        return _pieces(tokenizer, texts.texts, length)
    names = label_names(texts)
    encoded = tokenizer(
        list(texts.texts), truncation=True, padding="max_length", max_length=length, return_tensors="pt"
    )
    labels = torch.tensor([names.index(label) for label in texts.labels or ()])
    return [
        {"input_ids": ids, "attention_mask": mask, "labels": label}
        for ids, mask, label in zip(encoded["input_ids"], encoded["attention_mask"], labels, strict=True)
    ]


def _pieces(tokenizer: Any, texts: Sequence[str], length: int) -> list[Example]:
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    tokens = [token for text in texts for token in [*tokenizer(text)["input_ids"], *end]]
    count = len(tokens) // length
    if not count:
        found = f"{len(tokens)} tokens"
        raise InputError(Problem("input data", found, f"at least {length}, one example", "give more text"))
    pieces = torch.tensor(tokens[: count * length]).reshape(count, length)
    return [{"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids} for ids in pieces]
