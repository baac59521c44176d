"""evaluate_language_model: a model that does not fit the data is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from allranks.errors import InputError
from allranks_steps.text import llama

pytestmark = pytest.mark.slow  # Transformers takes seconds to import


def test_a_model_that_does_not_fit(code: Callable[[str, str], Any], tmp_path: Path) -> None:
    train = code("prepare_text", "tokenizing").train
    evaluate, save = code("evaluate_language_model", "evaluate"), code("train_language_model", "saving").save
    tokenizer, model = train(["one two"], 257), tmp_path / "model"
    config = llama.configuration(vocab_size=257, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    save(model, config, llama.Llama(config).state_dict(), tokenizer, "<|end|>")

    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert evaluate.load(model, tmp_path, torch.float32).config.vocab_size == 257
    train(["one two two"], 258).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match="a tokenizer of 257 tokens, and another one of 258 in the data"):
        evaluate.load(model, tmp_path, torch.float32)
    with pytest.raises(InputError, match=r"input model: no config\.json in"):
        evaluate.load(tmp_path / "nowhere", tmp_path, torch.float32)
