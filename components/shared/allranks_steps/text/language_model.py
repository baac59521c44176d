"""A trained language model as files, in the format of Transformers' `LlamaForCausalLM`.

config.json             the shape, and the id of the end token
model.safetensors       the weights; without lm_head.weight if the embeddings are tied
tokenizer.json          in the format of the library `tokenizers`
tokenizer_config.json   which lets `AutoTokenizer` load it
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from allranks_steps.json_files import write_json
from allranks_steps.text.gpt import Gpt, Shape

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
WITHIN = "artifacts/language_model"
"""The folder of the files within a model in MLflow's format, such as a training's output."""

PLACES = (WITHIN, "artifacts/huggingface", ".")
"""Where the files of a model can be: in ours, in one that finetune_language_model wrote, in a plain folder."""

_NAMES = {
    "vocabulary_size": "vocab_size",
    "max_seq_length": "max_position_embeddings",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "num_key_value_heads": "num_key_value_heads",
    "intermediate_size": "intermediate_size",
    "tie_word_embeddings": "tie_word_embeddings",
    "rms_norm_eps": "rms_norm_eps",
}
"""Fields of `Shape`, and the keys of config.json."""

_HEAD = "lm_head.weight"
_EMBEDDING = "model.embed_tokens.weight"


class BadModel(Exception):
    """The files are not a language model. The message says where, what was found and what to do."""


@dataclass(frozen=True)
class LanguageModel:
    """A network in evaluation mode, its shape, its tokenizer, and the id of the end token."""

    network: Gpt
    shape: Shape
    tokenizer: Tokenizer
    end: int


def write_config(folder: Path, shape: Shape, tokenizer: str, end: int) -> None:
    """Write a model's files except the weights. tokenizer: as JSON."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "rope_theta": shape.rope_theta,
        "bos_token_id": end,  # a text starts after the end of another one
        "eos_token_id": end,
        "dtype": "float32",
        "torch_dtype": "float32",  # its name before Transformers 4.56
    } | {key: getattr(shape, name) for name, key in _NAMES.items()}
    write_json(folder / CONFIG, config)
    (folder / TOKENIZER).write_text(tokenizer, encoding="utf-8")
    end_token = next((token for token, number in vocabulary(tokenizer).items() if number == end), None)
    options = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end_token, "bos_token": end_token}
    write_json(folder / TOKENIZER_CONFIG, options | {"clean_up_tokenization_spaces": False})


def write_weights(folder: Path, weights: Mapping[str, Tensor], shape: Shape) -> None:
    """Write a state dict of `Gpt` to the folder of its other files."""
    from safetensors.torch import save_file

    saved = {name: value for name, value in weights.items() if not (shape.tie_word_embeddings and name == _HEAD)}
    contiguous = {name: value.contiguous() for name, value in saved.items()}
    save_file(contiguous, folder / WEIGHTS, metadata={"format": "pt"})


def read_shape(folder: Path) -> tuple[Shape, int]:
    """Return the shape and the id of the end token of the model in a folder of its files, or in an MLflow model that
    contains them. Raise BadModel."""
    file = files(folder) / CONFIG
    if not file.is_file():
        raise BadModel(f"{folder} holds no {WITHIN}/{CONFIG}. Give the output `model` of train_language_model.")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        if config["model_type"] != "llama":
            raise BadModel(f"{file}: the model_type is {config['model_type']!r}. Give one of the type llama.")
        rope = config.get("rope_parameters") or config
        if config.get("rope_scaling") or rope.get("rope_type", "default") != "default":
            raise BadModel(f"{file}: the rotary positions are scaled. Give a model without.")
        shape = Shape(**{name: config[key] for name, key in _NAMES.items()}, rope_theta=rope["rope_theta"])
        return shape, int(config["eos_token_id"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadModel(f"{file} is damaged ({type(error).__name__}: {error}). Train the model again.") from None


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Map the weights of the model in a folder, as a state dict of `Gpt`. Raise BadModel."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    file = files(folder) / WEIGHTS
    try:
        weights = load_file(file)
    except (OSError, SafetensorError) as error:
        raise BadModel(f"{file} is damaged ({type(error).__name__}: {error}). Train the model again.") from None
    return {_HEAD: weights[_EMBEDDING], **weights} if _HEAD not in weights and _EMBEDDING in weights else weights


def read(folder: Path) -> LanguageModel:
    """Read the model from a folder of its files, or from an MLflow model that contains them. Raise BadModel."""
    from tokenizers import Tokenizer

    shape, end = read_shape(folder)
    weights = read_weights(folder)
    with torch.device("meta"):
        network = Gpt(shape)
    try:
        network.load_state_dict(weights, assign=True)
        if shape.tie_word_embeddings:
            network.lm_head.weight = network.model.embed_tokens.weight
        tokenizer = Tokenizer.from_file(str(files(folder) / TOKENIZER))
    # `tokenizers` raises plain Exception.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise BadModel(
            f"{files(folder)} is damaged ({type(error).__name__}: {reason}). Train the model again."
        ) from None
    return LanguageModel(network.float().eval().requires_grad_(False), shape, tokenizer, end)


def files(folder: Path) -> Path:
    """Return the folder of the files: within an MLflow model, or the folder itself."""
    return next((folder / place for place in PLACES if (folder / place / CONFIG).is_file()), folder)


def vocabulary(tokenizer: str) -> dict[str, int]:
    """Return the tokens of a tokenizer.json, with their ids."""
    content: dict[str, Any] = json.loads(tokenizer)
    tokens = content.get("model", {}).get("vocab", {})
    if isinstance(tokens, list):  # of the model Unigram: pairs of token and score
        tokens = {token: number for number, (token, _) in enumerate(tokens)}
    return dict(tokens) | {token["content"]: token["id"] for token in content.get("added_tokens", ())}
