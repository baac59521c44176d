"""Load the weights of a causal language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from allranks.errors import InputError, Problem
from allranks_steps.text.model_folder import ModelFolder, load_weights, open_model


def open_causal(place: Path, parameter: str, max_seq_length: int = 0) -> tuple[ModelFolder, Any]:
    """Return the folders of a model and its tokenizer. Raise InputError as `open_model` and `check_kind` do."""
    folder, config, tokenizer = open_model(place, parameter, max_seq_length)
    check_kind(folder, config)
    return folder, tokenizer


def check_kind(folder: ModelFolder, config: Any) -> None:
    """Raise InputError if the model is not one that continues texts."""
    architectures = tuple(getattr(config, "architectures", None) or ())
    is_causal = any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures)
    if type(config) not in AutoModelForCausalLM._model_mapping or (architectures and not is_causal):
        found = f"{', '.join(architectures) or config.model_type}"
        expected = "a causal language model, such as LlamaForCausalLM"
        raise InputError(Problem(f"input {folder.parameter}", found, expected, "give a model that continues texts"))


def load(folder: ModelFolder, dtype: torch.dtype, **options: Any) -> Any:
    """Load the model with an adapter that it may have, which is merged into the weights. Raise InputError as
    `load_weights` does, which has the options."""
    model = load_weights(AutoModelForCausalLM, folder, dtype=dtype, **options)
    if folder.adapter is None:
        return model
    try:
        from peft import PeftModel
    except ImportError:
        found = f"{folder.adapter}, and the environment has no peft"
        raise InputError(
            Problem(f"input {folder.parameter}", found, "a merged adapter", "fine-tune with merge=true")
        ) from None

    return PeftModel.from_pretrained(model, folder.adapter).merge_and_unload()
