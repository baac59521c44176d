"""Load a model that classifies texts, or that predicts a number for them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from allranks_steps.text.model_folder import ModelFolder, load_weights


def load(folder: ModelFolder, pad_token_id: int, **config: Any) -> Any:
    """Load the model. A base model gets a new layer for the labels.

    config: of a new layer: num_labels, id2label, label2id, problem_type

    Raise InputError if Transformers has no classifier of this kind, or weights other than the last layers' are missing.
    """
    return load_weights(
        AutoModelForSequenceClassification,
        folder,
        may_miss=lambda model, name: bool(config) and _is_new(model, name),
        dtype=torch.float32,
        ignore_mismatched_sizes=bool(config),
        pad_token_id=pad_token_id,
        **config,
    )


def _is_new(model: Any, name: str) -> bool:
    # A model that was trained to fill gaps has no pooler. It is trained with the layer for the labels.
    return not name.startswith(f"{model.base_model_prefix}.") or "pooler" in name
