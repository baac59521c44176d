"""evaluate_language_model: a model that does not fit the data is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from allranks.errors import InputError
from allranks_steps.text import gpt, language_model


def test_a_model_that_does_not_fit(code: Callable[[str, str], Any], tmp_path: Path) -> None:
    train = code("prepare_text", "tokenizing").train
    evaluate = code("evaluate_language_model", "evaluate")
    tokenizer = train(["one two"], 257).to_str()
    shape = gpt.Shape(257, 8, 16, 1, 2, 2, 24)
    language_model.write_config(tmp_path / "model", shape, tokenizer, 0)
    language_model.write_weights(tmp_path / "model", gpt.Gpt(shape).state_dict(), shape)

    (tmp_path / "tokenizer.json").write_text(tokenizer)
    assert torch.is_tensor(evaluate.load(tmp_path / "model", tmp_path).network.lm_head.weight)
    (tmp_path / "tokenizer.json").write_text(train(["one two two"], 258).to_str())
    with pytest.raises(InputError, match="a tokenizer of 257 tokens, and another one of 258 in the data"):
        evaluate.load(tmp_path / "model", tmp_path)
    with pytest.raises(InputError, match=r"holds no artifacts/language_model/config\.json"):
        evaluate.load(tmp_path / "nowhere", tmp_path)
