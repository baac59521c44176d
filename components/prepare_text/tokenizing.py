"""A byte-level BPE tokenizer: decoding restores every text exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from prepared_text import END, BadData
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

LEARNED_FROM = 4_000_000
"""Approximate number of characters to learn merges from: more text takes longer and changes few merges."""


def train(texts: list[str], vocabulary_size: int) -> Tokenizer:
    """Train a tokenizer of vocabulary_size tokens: the 256 bytes, END, and the merges that shorten the texts most.

    From large texts it samples every second, third, ... file. Raise BadData if the texts give too few tokens.
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
    size = tokenizer.get_vocab_size()
    if size < vocabulary_size:
        raise BadData(
            f"vocabulary_size is {vocabulary_size}, and the training files give {size} tokens. "
            f"Give a vocabulary_size of at most {size}, or more text."
        )
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> NDArray[np.uint16]:
    """Return the tokens of the texts, concatenated, with END after each text."""
    end = tokenizer.token_to_id(END)
    # A text may contain the characters of END: they are encoded as ordinary text.
    tokenizer.encode_special_tokens = True
    encoded = (encoding.ids for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False))
    return np.concatenate([np.array([*ids, end], dtype=np.uint16) for ids in encoded])
