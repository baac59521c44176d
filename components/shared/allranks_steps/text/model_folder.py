"""A model and its tokenizer in the format of Hugging Face: find, describe and load them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from allranks.errors import InputError, Problem
from allranks_steps.messages import bad_input

WITHIN = "artifacts/huggingface"
"""The folder of the model's files within the MLflow models of this project."""

ADAPTER = "adapter"
"""Folder of an unmerged adapter within the model's files."""

_EXPECTED = (
    "a model in Hugging Face's format (config.json, weights, tokenizer), or an MLflow model with one: "
    "the output `model` of a fine-tuning"
)


@dataclass(frozen=True)
class ModelFolder:
    """The folders of a model.

    parameter: the input that the model was given as, for messages
    weights:   holds config.json and the weights
    tokenizer: holds the tokenizer's files
    adapter:   holds an adapter that is not merged into the weights; None without one
    """

    parameter: str
    weights: Path
    tokenizer: Path
    adapter: Path | None


def find(folder: Path, parameter: str) -> ModelFolder:
    """Return the folders of a model: of a Hugging Face folder, of our MLflow model, or of MLflow's flavor transformers.

    Raise InputError if there is no config.json or no tokenizer.
    """
    logging.disable_progress_bar()  # which would fill a log
    inner = folder / WITHIN
    root = inner if inner.is_dir() else folder
    weights, tokenizer = _shallowest(root, "config.json"), _shallowest(root, "tokenizer_config.json")
    if weights is None or tokenizer is None:
        found = f"no {'config.json' if weights is None else 'tokenizer_config.json'} in {folder}"
        raise bad_input(f"input {parameter}", found, _EXPECTED, "give the folder of such a model")
    adapter = weights / ADAPTER
    return ModelFolder(parameter, weights, tokenizer, adapter if adapter.is_dir() else None)


def read_config(folder: ModelFolder) -> Any:
    """Return the model's configuration. Raise InputError if Transformers does not know its type."""
    try:
        return AutoConfig.from_pretrained(folder.weights, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise _unreadable(folder, error) from error


def read_tokenizer(folder: ModelFolder) -> Any:
    """Return the tokenizer, which pads with its end token if it has no padding token.

    Raise InputError if its files cannot be read, or it has neither token.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder.tokenizer, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise _unreadable(folder, error) from error
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            expected = "a padding token, or an end token to pad with"
            fix = "set pad_token in tokenizer_config.json"
            raise bad_input(f"input {folder.parameter}", "a tokenizer without both", expected, fix)
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def check_fit(folder: ModelFolder, config: Any, tokenizer: Any, max_seq_length: int) -> None:
    """Raise InputError if the model has no embedding for a token, or no position for max_seq_length tokens."""
    text = config.get_text_config()
    problems = []
    if len(tokenizer) > text.vocab_size:
        found = f"a tokenizer of {len(tokenizer)} tokens for {text.vocab_size} embeddings"
        fix = "give the model's own tokenizer"
        problems.append(Problem(f"input {folder.parameter}", found, "an embedding for each token", fix))
    positions = getattr(text, "max_position_embeddings", None)
    if positions and max_seq_length > positions:
        found = f"{max_seq_length} tokens for a model of {positions} positions"
        problems.append(Problem("input max_seq_length", found, f"at most {positions}", "make it smaller"))
    if problems:
        raise InputError.of(problems)


def open_model(place: Path, parameter: str, max_seq_length: int) -> tuple[ModelFolder, Any, Any]:
    """Return the folders of a model, its configuration and its tokenizer. Raise InputError as `find`, `read_config`,
    `read_tokenizer` and `check_fit` do."""
    folder = find(place, parameter)
    config, tokenizer = read_config(folder), read_tokenizer(folder)
    check_fit(folder, config, tokenizer, max_seq_length)
    return folder, config, tokenizer


def load_weights(
    kind: Any, folder: ModelFolder, may_miss: Callable[[Any, str], bool] = lambda _model, _name: False, **options: Any
) -> Any:
    """Load a model.

    kind:     one of Transformers' Auto classes
    may_miss: returns whether weights that the files lack may be new, for the model and their name
    options:  of from_pretrained

    Raise InputError if weights are missing, damaged or those of another model.
    """
    try:
        model, report = kind.from_pretrained(folder.weights, local_files_only=True, output_loading_info=True, **options)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise _unreadable(folder, error) from error
    if missing := sorted(name for name in report["missing_keys"] if not may_miss(model, name)):
        found = f"no weights for {', '.join(missing[:3])} in {folder.weights}"
        expected = "the weights of the whole model"
        raise bad_input(f"input {folder.parameter}", found, expected, "give the folder of the whole model")
    return model


def open_causal(place: Path, parameter: str, max_seq_length: int = 0) -> tuple[ModelFolder, Any]:
    """Return the folders of a model and its tokenizer. Raise InputError as `open_model` and `check_kind` do."""
    folder, config, tokenizer = open_model(place, parameter, max_seq_length)
    check_kind(folder, config)
    return folder, tokenizer


def check_kind(folder: ModelFolder, config: Any) -> None:
    """Raise InputError if the model is not a causal language model."""
    architectures = tuple(getattr(config, "architectures", None) or ())
    is_causal = any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures)
    if type(config) not in AutoModelForCausalLM._model_mapping or (architectures and not is_causal):
        found = f"{', '.join(architectures) or config.model_type}"
        expected = "a causal language model, such as LlamaForCausalLM"
        raise bad_input(f"input {folder.parameter}", found, expected, "give a model that continues texts")


def load_causal(folder: ModelFolder, dtype: torch.dtype, **options: Any) -> Any:
    """Load the model, and merge its adapter, if any, into the weights. Raise InputError as `load_weights` does.

    options: as for `load_weights`"""
    model = load_weights(AutoModelForCausalLM, folder, dtype=dtype, **options)
    if folder.adapter is None:
        return model
    try:
        from peft import PeftModel
    except ImportError:
        found = f"{folder.adapter}, and the environment has no peft"
        raise bad_input(f"input {folder.parameter}", found, "a merged adapter", "fine-tune with merge=true") from None

    return PeftModel.from_pretrained(model, folder.adapter).merge_and_unload()


def _unreadable(folder: ModelFolder, error: Exception) -> InputError:
    """Return the InputError for a model whose files cannot be read."""
    reason = " ".join(str(error).split())[:300]
    return bad_input(f"input {folder.parameter}", f"{folder.weights}: {reason}", _EXPECTED, "give another")


def _shallowest(root: Path, name: str) -> Path | None:
    """Return the folder of the file with the fewest parents. Adapters are ignored."""
    files = (file for file in root.rglob(name) if ADAPTER not in file.relative_to(root).parts)
    file = min(files, key=lambda file: (len(file.parts), str(file)), default=None)
    return file.parent if file else None
