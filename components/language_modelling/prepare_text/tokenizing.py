"""The tokenizer: a byte-level BPE tokenizer that is trained on the corpus, or an existing one."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import ByteLevelBPETokenizer, Tokenizer

from allranks_steps.messages import bad_input

END = "<|end|>"
"""The end token of a tokenizer that is trained here."""

END_TOKENS = (END, "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>")
"""End tokens of existing tokenizers, tried in this order: ours, GPT-2's and Qwen's, Llama 3's, Llama 2's, Gemma's."""


def train(texts: Iterable[str], vocabulary_size: int) -> Tokenizer:
    """Train a tokenizer of vocabulary_size tokens with END. Raise InputError if the texts give too few tokens."""
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(texts, vocabulary_size, 0, show_progress=False, special_tokens=[END])
    size = tokenizer.get_vocab_size()
    if size < vocabulary_size:
        found = f"{vocabulary_size}, and the training files give {size} tokens"
        raise bad_input("input vocabulary_size", found, f"at most {size}", "make it smaller, or give more text")
    return Tokenizer.from_str(tokenizer.to_str())


def read(file: Path) -> Tokenizer:
    """Read a tokenizer.json, or the one in a folder. Raise InputError."""
    path = file / "tokenizer.json" if file.is_dir() else file
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # `tokenizers` raises nothing more specific
        found = f"{path} is not a tokenizer.json of the library tokenizers ({error})"
        raise bad_input("input tokenizer", found) from None


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """Return one more than the highest id."""
    return 1 + max(tokenizer.get_vocab(with_added_tokens=True).values())


def end_token(tokenizer: Tokenizer, name: str | None = None) -> int:
    """Return the id of the end token. name: None looks for one of END_TOKENS. Raise InputError."""
    names = (name,) if name else END_TOKENS
    for candidate in names:
        number: int | None = tokenizer.token_to_id(candidate)
        if number is not None:
            return number
    found = f"the tokenizer has no {' or '.join(names)}"
    raise bad_input("input end_token", found, fix="give the name of a token that ends a text")


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> list[NDArray[Any]]:
    """Return the tokens of each text, without special tokens."""
    # A text may contain the characters of a special token: they are encoded as ordinary text.
    tokenizer.encode_special_tokens = True
    return [
        np.array(encoding.ids, np.uint32) for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    ]
