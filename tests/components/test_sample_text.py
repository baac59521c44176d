"""sample_text: text from a model, the same for the same seed, also through MLflow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from allranks_steps.text import generation, gpt, language_model

Importer = Callable[[str, str], Any]


@pytest.fixture
def model(code: Importer) -> Any:
    """An untrained model of bytes, sure enough of itself that draws are no coin tosses."""
    tokenizer = code("prepare_text", "tokenizing").train(["one two"], 257)
    torch.manual_seed(0)
    shape = gpt.Shape(257, 6, 16, 1, num_attention_heads=2, num_key_value_heads=1, intermediate_size=24)
    network = gpt.Gpt(shape).eval()
    with torch.no_grad():
        network.lm_head.weight.mul_(50)
    return language_model.LanguageModel(network, shape, tokenizer, end=0)


def text(model: Any, seed: int = 0, **changes: Any) -> str:
    settings = {"max_tokens": 20, "temperature": 1.0, "top_k": 0} | changes
    written: str = generation.continued(
        model, settings.pop("prompt", "one"), generator=torch.Generator().manual_seed(seed), **settings
    )
    return written


def test_the_seed_decides_the_text(model: Any) -> None:
    first, again, other = (text(model, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first.startswith("one")


@pytest.mark.parametrize("careful", [{"temperature": 0.0}, {"top_k": 1}], ids=["temperature 0", "top 1"])
def test_the_likeliest_token_needs_no_luck(model: Any, careful: dict[str, Any]) -> None:
    found = {text(model, seed=seed, **careful) for seed in range(3)}
    assert len(found) == 1


def test_only_the_likeliest_are_drawn() -> None:
    scores = torch.tensor([0.0, 3.0, 1.0, 2.0])
    for top_k, expected in ((2, {1, 3}), (3, {1, 2, 3}), (0, {0, 1, 2, 3}), (9, {0, 1, 2, 3})):
        generator = torch.Generator().manual_seed(0)
        assert {generation.draw(scores, 2.0, top_k, generator) for _ in range(200)} == expected


def test_the_end_of_a_text_ends_it(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([ord("!") - 32, model.end])
    monkeypatch.setattr(generation, "draw", lambda *_: next(drawn))
    assert text(model) == "one!"


def test_a_model_without_a_prompt_begins_a_text(model: Any) -> None:
    assert text(model, prompt="", max_tokens=4)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("none", "holds no"),
        ("config.json", "is damaged"),
        ("model.safetensors", "is damaged"),
        ("tokenizer.json", "is damaged"),
    ],
)
def test_files_that_are_no_model(model: Any, tmp_path: Path, harm: str, said: str) -> None:
    if harm != "none":
        weights, tokenizer = model.network.state_dict(), model.tokenizer.to_str()
        language_model.write_config(tmp_path, model.shape, tokenizer, model.end)
        language_model.write_weights(tmp_path, weights, model.shape)
        assert language_model.read(tmp_path).shape == model.shape
        (tmp_path / harm).write_text("{")
    with pytest.raises(language_model.BadModel, match=said):
        language_model.read(tmp_path)
