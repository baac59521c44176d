"""create_base_model: a small model that Transformers loads, made from texts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.errors import InputError

pytestmark = pytest.mark.slow
"""One process of pytest imports Transformers, for the fine-tunings too."""


def test_the_model_learns_the_texts_and_loads(on_one_rank: Callable[..., None], tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    texts = tmp_path / "texts.jsonl"
    texts.write_text(json.dumps({"text": "one two three four five six seven eight nine ten " * 9}) + "\n")
    settings = ["--hidden_size=16", "--num_hidden_layers=1", "--num_attention_heads=2", "--max_seq_length=8"]
    settings += ["--vocab_size=280", "--max_steps=40", "--learning_rate=0.03", f"--text={texts}"]
    on_one_rank("create_base_model", "create", *settings, f"--model={tmp_path / 'model'}")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert (len(tokenizer), model.config.vocab_size, model.config.tie_word_embeddings) == (280, 280, True)
    written = tokenizer.apply_chat_template([{"role": "user", "content": "one"}], tokenize=False)
    assert written == "<|im_start|>user\none<|im_end|>\n"
    ids = tokenizer("three four five six", return_tensors="pt")["input_ids"]
    assert model(input_ids=ids, labels=ids).loss < 4

    texts.write_text(json.dumps({"words": "one"}) + "\n")
    with pytest.raises(InputError, match="input text: the columns words"):
        on_one_rank("create_base_model", "create", *settings, f"--model={tmp_path / 'model'}")
