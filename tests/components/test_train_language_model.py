"""train_language_model: the network, the parts of its training, and inputs that do not fit together."""

import math
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from component_processes import folder_of
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from allranks import runtime
from allranks.errors import InputError
from allranks_steps.schedule import Schedule
from allranks_steps.text import llama, windows
from allranks_steps.training_settings import total_steps

pytestmark = pytest.mark.slow  # Transformers takes seconds to import

Importer = Callable[[str, str], Any]


SPEC = folder_of("train_language_model") / "component.yaml"


def small(**changes: Any) -> LlamaConfig:
    """A small configuration with grouped-query attention."""
    values = {"vocab_size": 50, "max_position_embeddings": 12, "hidden_size": 16, "num_hidden_layers": 2}
    values |= {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24}
    return llama.configuration(**{"bos_token_id": 0, "eos_token_id": 0} | values | changes)


@pytest.fixture
def modules(code: Importer) -> Any:
    """Imports a module of the component."""
    return lambda name: code("train_language_model", name)


def arguments(**given: object) -> Namespace:
    """The arguments of a command line with these inputs."""
    places = {"data": "data", "model": "model", "checkpoints": "checkpoints", "history": "history"}
    return runtime.arguments(SPEC, [f"--{name}={value}" for name, value in (places | given).items()])


@pytest.fixture
def tokenizer(code: Importer) -> Tokenizer:
    found: Tokenizer = code("prepare_text", "tokenizing").train(["one two", "two three"], 258)
    return found


@pytest.mark.parametrize("tied", [False, True])
def test_transformers_loads_the_model_and_computes_the_same(
    modules: Any, tmp_path: Path, tokenizer: Tokenizer, tied: bool
) -> None:
    config = small(vocab_size=258, tie_word_embeddings=tied)
    torch.manual_seed(0)
    model = llama.Llama(config)
    modules("saving").save(tmp_path, config, model.state_dict(), tokenizer, "<|end|>")
    folder = tmp_path / "artifacts/huggingface"
    loaded, words = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert type(loaded) is LlamaForCausalLM
    assert words("two one<|end|>")["input_ids"] == tokenizer.encode("two one<|end|>").ids
    assert words.decode(words("two  öne")["input_ids"]) == "two  öne"
    assert (words.eos_token, loaded.config.eos_token_id) == ("<|end|>", 0)
    tokens = torch.randint(258, (2, 12))
    with torch.no_grad():
        assert torch.equal(loaded(tokens).logits, model(tokens).logits)
    # It can be the initial model of another training.
    args = arguments(initial_model=tmp_path)
    data = SimpleNamespace(vocabulary_size=258, end=0)
    found = modules("start").config(args, data, tokenizer)
    again = modules("start").build(found, tmp_path)()
    assert torch.equal(again(tokens).logits, model(tokens).logits)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("chunk", [1 << 20, 7 * 50])
def test_the_loss_in_chunks_is_the_mean_cross_entropy(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, chunk: int
) -> None:
    monkeypatch.setattr(llama, "CHUNK_SCORES", chunk)
    torch.manual_seed(0)
    model = llama.Llama(small())
    tokens, targets = torch.randint(50, (2, 6, 12))
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        loss = model(tokens, targets)
    found = torch.autograd.grad(loss, model.lm_head.weight)[0]
    plain = functional.cross_entropy(model(tokens).logits.flatten(0, 1), targets.flatten())
    expected = torch.autograd.grad(plain, model.lm_head.weight)[0]
    assert loss.dtype == torch.float32
    tolerance = 1e-6 if dtype == torch.float32 else 1e-3
    assert loss.item() == pytest.approx(plain.item(), rel=tolerance)
    assert (found - expected).norm() < 30 * tolerance * expected.norm()
    assert loss.item() == pytest.approx(math.log(50), rel=0.05)  # at first every token is as likely


@pytest.mark.parametrize(
    ("size", "vocabulary", "millions"),
    [
        ("3M", 2048, 3.46),
        ("30M", 8192, 29.9),
        ("124M", 50304, 123.6),
        ("350M", 50304, 355),
        ("1B", 32000, 1100),
        ("3B", 50304, 2970),
        ("7B", 32000, 6738),
    ],
)
def test_the_sizes_have_the_parameters_of_their_names(
    modules: Any, size: str, vocabulary: int, millions: float
) -> None:
    config = modules("presets").config(arguments(model_size=size), vocabulary, 0)
    with torch.device("meta"):
        count = llama.Llama(config).num_parameters()
    assert count == pytest.approx(millions * 1e6, rel=0.005)
    # 6 operations a parameter that is multiplied, and attention's.
    flops = modules("throughput").flops_per_token(config, count)
    multiplied = count if config.tie_word_embeddings else count - vocabulary * config.hidden_size
    assert flops - 6 * multiplied == 12 * config.num_hidden_layers * config.hidden_size * config.max_position_embeddings


def test_single_dimensions_are_overridden(modules: Any) -> None:
    given = {"hidden_size": 96, "num_attention_heads": 6, "max_seq_length": 20}
    found = modules("presets").config(arguments(model_size="1B", **given), 500, 3)
    assert (found.hidden_size, found.num_attention_heads, found.max_position_embeddings) == (96, 6, 20)
    assert (found.num_key_value_heads, found.intermediate_size, found.num_hidden_layers) == (6, 256, 22)
    assert (found.vocab_size, found.bos_token_id, found.eos_token_id) == (500, 3, 3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"num_attention_heads": 3}, "input num_attention_heads: 3 heads with a hidden_size of 256"),
        ({"num_key_value_heads": 3}, "input num_key_value_heads: 3 for 4 attention heads"),
    ],
)
def test_dimensions_that_do_not_fit_together(modules: Any, given: dict[str, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        modules("presets").config(arguments(**given), 500, 0)


@pytest.mark.parametrize(
    ("name", "first", "middle", "last"),
    [
        ("linear", 1 / 3, 0.55, 0.1),
        ("cosine", 1 / 3, 0.55, 0.1),
        ("constant_with_warmup", 1 / 3, 1, 1),
        ("constant", 1, 1, 1),
    ],
)
def test_learning_rate_schedules(name: str, first: float, middle: float, last: float) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.0)
    schedule = Schedule(name, 12, 2, 0.1)(optimizer)
    rates = []
    for _ in range(13):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert [rates[0], rates[2], rates[7], rates[12]] == pytest.approx([2 * first, 2, 2 * middle, 2 * last])


def test_windows_and_what_follows() -> None:
    tokens = np.arange(70_000, 70_012, dtype=np.uint32)
    found = windows.Windows(tokens, 5)
    assert (len(found), len(windows.Windows(tokens[:10], 5)), len(windows.Windows(tokens[:0], 5))) == (2, 1, 0)
    seen, following = windows.divided(torch.stack([found[1], found[0]]))
    assert seen.tolist() == [list(range(70_005, 70_010)), list(range(70_000, 70_005))]
    assert torch.equal(following, seen + 1)
    # Each token but the first is scored once.
    assert [each["labels"].tolist() for each in windows.Scored(tokens[:8] - 70_000, 4)] == [
        [0, 1, 2, 3],
        [3, 4, 5, 6],
        [6, 7],
    ]
    assert (len(windows.Scored(tokens[:7], 4)), len(windows.Scored(tokens[:1], 4))) == (2, 0)


def test_the_inputs_in_effect(modules: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """tests/runtime/test_deepspeed_inputs.py has the inputs and the file in every combination."""
    monkeypatch.setattr(sys, "argv", ["train.py", "--spec", str(SPEC)])

    def found(**given: object) -> Namespace:
        resolved: Namespace = modules("start").resolved(arguments(**given), 2)
        return resolved

    plain = found(model_size="30M")
    assert (plain.per_device_train_batch_size, plain.gradient_accumulation_steps) == (8, 1)
    assert (plain.max_grad_norm, plain.precision, plain.learning_rate) == (1.0, "auto", 1e-3)
    (tmp_path / "ds.json").write_text('{"train_batch_size": 24, "gradient_clipping": 0.5, "bf16": {"enabled": "auto"}}')
    tuned = found(deepspeed=tmp_path / "ds.json", strategy="deepspeed", gradient_accumulation_steps=4)
    assert (tuned.per_device_train_batch_size, tuned.gradient_accumulation_steps) == (3, 4)
    assert (tuned.max_grad_norm, tuned.precision) == (0.5, "auto")
    assert (tuned.learning_rate, tuned.deepspeed_stage) == (2e-3, 2)
    with pytest.raises(InputError, match=r"input max_grad_norm: 1\.0, and 0\.5 in .*, key gradient_clipping"):
        found(deepspeed=tmp_path / "ds.json", strategy="deepspeed", max_grad_norm=1.0)


def test_the_number_of_steps(modules: Any) -> None:
    def steps(**given: object) -> int:
        return total_steps(arguments(**({"gradient_accumulation_steps": 3} | given)), 12)

    assert (steps(max_steps=7), steps(), steps(num_train_epochs=2.5)) == (7, 4, 10)
    with pytest.raises(InputError, match="input max_steps: 0"):
        steps(max_steps=0)
    with pytest.raises(InputError, match=r"input num_train_epochs: 0\.2, which makes 2 forward and backward passes"):
        steps(num_train_epochs=0.2)
    assert steps(max_steps=7, warmup_steps=6) == 7
    with pytest.raises(InputError, match="input warmup_steps: 7 of 7 steps"):
        steps(max_steps=7, warmup_steps=7)
    modules("start").check_resumed(7, 7, -1)
    with pytest.raises(InputError, match="input num_train_epochs: 7 steps, and the checkpoint to resume from has 8"):
        modules("start").check_resumed(8, 7, -1)


def test_too_little_text(modules: Any) -> None:
    data = modules("training_data")
    short = windows.Windows(np.zeros(41, np.uint16), 5)
    data.require_batch(short, 4, 2)
    with pytest.raises(InputError, match="input per_device_train_batch_size: 5 sequences of 5 tokens on each of 2"):
        data.require_batch(short, 5, 2)
    with pytest.raises(InputError, match="input eval_steps: 5 validation tokens"):
        data.require_window(windows.Windows(np.zeros(5, np.uint16), 5))


def test_an_initial_model_that_does_not_fit(modules: Any, tmp_path: Path, tokenizer: Tokenizer) -> None:
    start, config = modules("start"), small(vocab_size=258)
    modules("saving").save(tmp_path, config, llama.Llama(config).state_dict(), tokenizer, "<|end|>")
    args, data = arguments(initial_model=tmp_path, hidden_size=16), SimpleNamespace(vocabulary_size=258, end=0)
    assert start.config(args, data, tokenizer).hidden_size == 16
    with pytest.raises(InputError, match="input hidden_size: 32, and 16 in initial_model"):
        start.config(arguments(initial_model=tmp_path, hidden_size=32), data, tokenizer)
    tokenizer.add_tokens(["three"])
    with pytest.raises(InputError, match="input initial_model: 258 tokens; the data has another tokenizer, with 258"):
        start.config(args, data, tokenizer)
    with pytest.raises(InputError, match=r"input initial_model: no config\.json in"):
        start.config(arguments(initial_model=tmp_path / "none"), data, tokenizer)
    with pytest.raises(InputError, match=r"input initial_model: .*size mismatch for"):
        start.build(small(vocab_size=300), tmp_path)()
    (tmp_path / "artifacts/huggingface/model.safetensors").write_text("{")
    with pytest.raises(InputError, match=r"input initial_model: the weights in .* are damaged"):
        start.build(config, tmp_path)


@pytest.mark.parametrize(
    ("name", "precision", "tf32", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "bfloat16", False, 989.5e12),
        ("NVIDIA H100 PCIe", "float16", False, 756.5e12),
        ("NVIDIA A100-SXM4-80GB", "float32", True, 156e12),
        ("NVIDIA A100-SXM4-80GB", "float32", False, None),
        ("Tesla V100-SXM2-32GB", "bfloat16", True, None),
        ("Some GPU", "bfloat16", True, None),
    ],
)
def test_the_peak_of_a_gpu(
    modules: Any, monkeypatch: pytest.MonkeyPatch, name: str, precision: str, tf32: bool, expected: float | None
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: name)
    throughput = modules("throughput")
    assert throughput.peak_flops(torch.device("cuda"), precision, tf32) == expected
    assert throughput.peak_flops(torch.device("cpu"), precision, tf32) is None


def test_each_size_can_be_chosen(modules: Any) -> None:
    with pytest.raises(InputError, match=f"one of {', '.join(modules('presets').PRESETS)}$"):
        arguments(model_size="5M")
