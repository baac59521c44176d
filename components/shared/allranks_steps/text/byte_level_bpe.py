"""Train a byte-level BPE tokenizer."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def train(texts: Iterable[str], vocabulary_size: int, special_tokens: list[str]) -> Tokenizer:
    """Return a tokenizer of the special tokens, the 256 bytes, and the merges that shorten the texts most.

    Decoding restores every text exactly. It has fewer than vocabulary_size tokens if the texts give fewer merges.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
