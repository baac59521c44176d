"""The tokenizer: a byte-level BPE tokenizer that is trained on the corpus, or an existing one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from allranks_steps.text.prepared_text import BadData

END = "<|end|>"
"""The end token of a tokenizer that is trained here."""

END_TOKENS = (END, "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>")
"""End tokens of existing tokenizers, tried in this order: ours, GPT-2's and Qwen's, Llama 3's, Llama 2's, Gemma's."""


def train(texts: Iterable[str], vocabulary_size: int) -> Tokenizer:
    """Train a tokenizer of vocabulary_size tokens: the 256 bytes, END, and the merges that shorten the texts most.

    Decoding restores every text exactly. Raise BadData if the texts give too few tokens.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    size = tokenizer.get_vocab_size()
    if size < vocabulary_size:
        raise BadData(
            f"vocabulary_size is {vocabulary_size}, and the training files give {size} tokens. "
            f"Give a vocabulary_size of at most {size}, or more text."
        )
    return tokenizer


def read(file: Path) -> Tokenizer:
    """Read a tokenizer.json, or the one in a folder. Raise BadData."""
    path = file / "tokenizer.json" if file.is_dir() else file
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # `tokenizers` raises nothing more specific
        raise BadData(f"tokenizer: {path} is no tokenizer.json of the library tokenizers ({error}).") from None


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """Return one more than the highest id."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())


def end_token(tokenizer: Tokenizer, name: str = "") -> int:
    """Return the id of the end token. name: "" looks for one of END_TOKENS. Raise BadData."""
    names = (name,) if name else END_TOKENS
    for candidate in names:
        found: int | None = tokenizer.token_to_id(candidate)
        if found is not None:
            return found
    raise BadData(f"end_token: the tokenizer has no {' or '.join(names)}. Give the name of a token that ends a text.")


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> list[NDArray[Any]]:
    """Return the tokens of each text, without special tokens."""
    # A text may contain the characters of a special token: they are encoded as ordinary text.
    tokenizer.encode_special_tokens = True
    return [
        np.array(encoding.ids, np.uint32) for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ]
