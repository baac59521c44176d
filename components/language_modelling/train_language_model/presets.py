"""Model sizes from 3 million to 7 billion parameters, with the learning rate that suits them."""

from argparse import Namespace
from dataclasses import dataclass

from transformers import LlamaConfig

from allranks_steps.text.llama import configuration


@dataclass(frozen=True)
class Preset:
    """The dimensions of a model size without its vocabulary, and its highest learning rate for Adam.

    The number of parameters in a size's name includes the embeddings of a vocabulary of 32,000 to 50,000 tokens (of
    2,048 in 3M, and 8,192 in 30M).
    """

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    intermediate_size: int
    max_seq_length: int
    tie_word_embeddings: bool
    learning_rate: float


PRESETS = {
    "3M": Preset(256, 3, 4, 4, 704, 128, False, 2e-3),
    "30M": Preset(512, 8, 8, 8, 1408, 512, True, 1e-3),
    # Depth, width and learning rate of 124M, 350M and 3B: Brown et al., arXiv:2005.14165, table 2.1.
    "124M": Preset(768, 12, 12, 12, 2048, 1024, True, 6e-4),
    "350M": Preset(1024, 24, 16, 16, 2752, 1024, True, 3e-4),
    # TinyLlama: Zhang et al., arXiv:2401.02385, table 1.
    "1B": Preset(2048, 22, 32, 4, 5632, 2048, False, 4e-4),
    # The shape of Llama 3.2 3B, from its config.json.
    "3B": Preset(3072, 28, 24, 8, 8192, 4096, True, 1.6e-4),
    # Llama 2 7B: Touvron et al., arXiv:2307.09288, and its config.json.
    "7B": Preset(4096, 32, 32, 32, 11008, 4096, False, 3e-4),
}

KEYS = {
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "num_key_value_heads": "num_key_value_heads",
    "intermediate_size": "intermediate_size",
    "max_seq_length": "max_position_embeddings",
}
"""The inputs that override single dimensions, and their keys in Llama's configuration."""


def config(args: Namespace, vocabulary_size: int, end: int) -> LlamaConfig:
    """Return the configuration of args.model_size, with the dimensions in KEYS that args gives (not None).

    Unless it is given, intermediate_size follows hidden_size, and num_key_value_heads follows num_attention_heads.

    end: id of the token between texts

    Raise InputError if the dimensions do not fit together.
    """
    preset = PRESETS[args.model_size]
    given = {name: getattr(args, name) for name in KEYS if getattr(args, name) is not None}
    values = {name: getattr(preset, name) for name in KEYS} | given
    if "hidden_size" in given and "intermediate_size" not in given:
        values["intermediate_size"] = -(-given["hidden_size"] * 8 // 3 // 64) * 64
    if "num_attention_heads" in given and "num_key_value_heads" not in given:
        values["num_key_value_heads"] = given["num_attention_heads"]
    return configuration(
        vocab_size=vocabulary_size,
        bos_token_id=end,
        eos_token_id=end,
        tie_word_embeddings=preset.tie_word_embeddings,
        **{KEYS[name]: value for name, value in values.items()},
    )
