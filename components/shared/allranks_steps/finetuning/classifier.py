"""Load a model that classifies texts, or that predicts a number for them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from allranks.errors import InputError, Problem
from allranks_steps.finetuning.base_model import ModelFolder, unreadable


def load(folder: ModelFolder, pad_token_id: int, dtype: torch.dtype = torch.float32, **config: Any) -> Any:
    """Load the model. A base model gets a new layer for the labels.

    config: of a new layer: num_labels, id2label, label2id, problem_type

    Raise InputError if Transformers has no classifier of this kind, or weights other than the last layers' are missing.
    """
    try:
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder.weights,
            dtype=dtype,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=bool(config),
            pad_token_id=pad_token_id,
            **config,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise unreadable(folder, error) from error
    # A model that was trained to fill gaps has no pooler. It is trained with the layer for the labels.
    missing = [name for name in report["missing_keys"] if _is_old(name, model) or not config]
    if missing:
        found = f"no weights for {', '.join(sorted(missing)[:3])} in {folder.weights}"
        expected = "the weights of the whole model"
        raise InputError(Problem(f"input {folder.parameter}", found, expected, "give the folder of the whole model"))
    return model


def _is_old(name: str, model: Any) -> bool:
    return name.startswith(f"{model.base_model_prefix}.") and "pooler" not in name
