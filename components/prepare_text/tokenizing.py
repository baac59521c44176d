"""A byte-level BPE tokenizer: every text comes back from its tokens as it was."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from prepared_text import END, BadData
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

LEARNED_FROM = 4_000_000
"""Characters, about, that merges are learned from: more of the same text takes longer and changes few of them."""


def train(texts: list[str], vocabulary_size: int) -> Tokenizer:
    """A tokenizer of so many tokens: the 256 bytes, END, and the merges that shorten the texts most.

    Of much text it learns from every second, third, ... file.

    Raises BadData where the texts do not give so many.
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
    every = max(1, sum(map(len, texts)) // LEARNED_FROM)
    tokenizer.train_from_iterator(texts[::every], trainer)
    found = tokenizer.get_vocab_size()
    if found < vocabulary_size:
        raise BadData(
            f"vocabulary_size is {vocabulary_size}, and the training files give {found} tokens. "
            f"Give a vocabulary_size of at most {found}, or more text."
        )
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> NDArray[np.uint16]:
    """The tokens of the texts after each other, each with END after it."""
    end = tokenizer.token_to_id(END)
    # A text may spell END itself, as this file does: such characters are ordinary ones.
    tokenizer.encode_special_tokens = True
    encoded = (encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    return np.concatenate([np.array([*ids, end], dtype=np.uint16) for ids in encoded])
