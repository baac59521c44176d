"""A trained language model as files: its weights, its shape, its tokenizer.

config.json      the shape, and the id of the end token
weights.pt       the network's state_dict
tokenizer.json   in the format of the library `tokenizers`
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from gpt import Gpt, Shape
from tokenizers import Tokenizer

CONFIG, WEIGHTS, TOKENIZER = "config.json", "weights.pt", "tokenizer.json"
WITHIN = "artifacts/language_model"
"""The folder of the files within a model in MLflow's format, such as a training's output."""


class BadModel(Exception):
    """The files are no language model. The message says where, what was found and what to do."""


@dataclass(frozen=True)
class LanguageModel:
    """A network in evaluation mode, its shape, its tokenizer, and the id of the end token."""

    network: Gpt
    shape: Shape
    tokenizer: Tokenizer
    end: int


def write(folder: Path, weights: Mapping[str, Any], shape: Shape, tokenizer: str, end: int) -> None:
    """Write a model's files to a folder. tokenizer: as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(dict(weights), folder / WEIGHTS)
    (folder / TOKENIZER).write_text(tokenizer, encoding="utf-8")
    config = asdict(shape) | {"end": end}
    (folder / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def read(folder: Path) -> LanguageModel:
    """Read the model from a folder of its files, or from an MLflow model that contains them. Raise BadModel."""
    inner = folder / WITHIN
    files = inner if inner.is_dir() else folder
    if not (files / CONFIG).is_file():
        raise BadModel(f"{folder} holds no {WITHIN}/{CONFIG}. Give the output `model` of train_language_model.")
    try:
        config = json.loads((files / CONFIG).read_text(encoding="utf-8"))
        end = int(config.pop("end"))
        shape = Shape(**config)
        network = Gpt(shape)
        network.load_state_dict(torch.load(files / WEIGHTS, map_location="cpu", weights_only=True))
        tokenizer = Tokenizer.from_file(str(files / TOKENIZER))
    # `tokenizers` raises plain Exception; torch raises several types for a damaged file.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise BadModel(f"{files} is damaged ({type(error).__name__}: {reason}). Train the model again.") from None
    return LanguageModel(network.eval(), shape, tokenizer, end)
