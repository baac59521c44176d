"""The folder that `prepare_text` writes and that training and evaluation read.

    description.json                          what the text is: `Description`
    tokenizer.json                            the tokenizer, in the format of the library `tokenizers`
    train_tokens.npy, validation_tokens.npy   uint16, (count,), the files concatenated, each followed by END

The arrays are plain, so that the ranks of an instance map the same pages instead of each holding a copy.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SPLITS = ("train", "validation")
DESCRIPTION = "description.json"
TOKENIZER = "tokenizer.json"
END = "<|end|>"
"""The token after every file."""


class BadData(Exception):
    """The data cannot be used. The message says where, what was found and what to do; nothing was written."""


@dataclass(frozen=True)
class Description:
    """The content of `description.json`.

    source:             the folder's name, or "stdlib"
    vocabulary_size:    number of the tokenizer's tokens
    end:                the id of the token END
    files, bytes, tokens: of each split
    skipped:            number of skipped files, by reason
    unigram_perplexity: of the validation tokens under the frequencies of the training tokens
    """

    source: str
    vocabulary_size: int
    end: int
    files: Mapping[str, int]
    bytes: Mapping[str, int]
    tokens: Mapping[str, int]
    skipped: Mapping[str, int]
    unigram_perplexity: float


def write(folder: Path, description: Description, tokenizer: str, tokens: Mapping[str, NDArray[np.uint16]]) -> None:
    """Write tokens and tokenizer (as JSON) and, last, the description. On failure, no partial files are left."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    try:
        for split, values in tokens.items():
            np.save(partial / f"{split}_tokens.npy", values)
        (partial / TOKENIZER).write_text(tokenizer, encoding="utf-8")
        (partial / DESCRIPTION).write_text(json.dumps(asdict(description), indent=2) + "\n", encoding="utf-8")
        for file in sorted(partial.iterdir(), key=lambda file: file.name == DESCRIPTION):
            os.replace(file, folder / file.name)
    finally:
        shutil.rmtree(partial)


def read_description(folder: Path) -> Description:
    """Read `description.json` in the folder. Raise BadData if the folder was not written by prepare_text."""
    file = folder / DESCRIPTION
    try:
        return Description(**json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise BadData(f"{folder} holds no {DESCRIPTION}. Give the output `text` of prepare_text.") from None
    except (ValueError, TypeError) as error:
        raise BadData(f"{file} is damaged ({error}). Run prepare_text again.") from None


def read_tokens(folder: Path, split: str) -> NDArray[np.uint16]:
    """Return the tokens of one of the SPLITS as a read-only memory map. Raise BadData."""
    try:
        tokens: NDArray[np.uint16] = np.load(folder / f"{split}_tokens.npy", mmap_mode="r")
    except (OSError, ValueError) as error:
        raise BadData(f"{folder}: the {split} tokens cannot be read ({error}). Run prepare_text again.") from None
    if tokens.ndim != 1 or tokens.dtype != np.uint16:
        raise BadData(f"{folder}: the {split} tokens are {tokens.dtype} of {tokens.shape}. Run prepare_text again.")
    return tokens
