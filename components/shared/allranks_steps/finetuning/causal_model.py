"""Load the weights of a causal language model."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM

from allranks.errors import InputError, Problem
from allranks_steps.finetuning.base_model import ModelFolder, unreadable


def check_kind(folder: ModelFolder, config: Any) -> None:
    """Raise InputError if the model is not one that continues texts."""
    architectures = tuple(getattr(config, "architectures", None) or ())
    is_causal = any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures)
    if type(config) not in AutoModelForCausalLM._model_mapping or (architectures and not is_causal):
        found = f"{', '.join(architectures) or config.model_type}"
        expected = "a causal language model, such as LlamaForCausalLM"
        raise InputError(Problem(f"input {folder.parameter}", found, expected, "give a model that continues texts"))


def load(folder: ModelFolder, dtype: torch.dtype, **options: Any) -> Any:
    """Load the model with an adapter that it may have, which is merged into the weights.

    options: of from_pretrained

    Raise InputError if the weights are missing, damaged or those of another model.
    """
    try:
        model, report = AutoModelForCausalLM.from_pretrained(
            folder.weights, dtype=dtype, local_files_only=True, output_loading_info=True, **options
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise unreadable(folder, error) from error
    if report["missing_keys"]:
        found = f"no weights for {', '.join(sorted(report['missing_keys'])[:3])} in {folder.weights}"
        fix = "give the folder of the whole model"
        raise InputError(Problem(f"input {folder.parameter}", found, "the weights of all layers", fix))
    if folder.adapter is None:
        return model
    from peft import PeftModel

    return PeftModel.from_pretrained(model, folder.adapter).merge_and_unload()
