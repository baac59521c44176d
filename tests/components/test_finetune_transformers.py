"""The three components that tune a model of transformers: what they read, what they refuse, and real trainings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from component_processes import COMPONENTS, Ended
from launches import by_platform, environment

from allranks.contract import report
from allranks.contract.pytorch import PyTorch
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError

Importer = Callable[[str, str], Any]

needs_model = pytest.mark.xdist_group("transformers")
"""One process of pytest imports Transformers, for all of these."""

WORDS = ("one", "two", "three", "four", "five")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of two small layers, and a tokenizer that knows ten words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    vocabulary = {word: number for number, word in enumerate(("<end>", "<unknown>", *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", unk_token="<unknown>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(vocabulary), n_positions=16, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "count.txt").write_text(" ".join(WORDS * 80))
    lines = [{"text": " ".join(WORDS[: 1 + number % 5]), "label": number % 2} for number in range(20)]
    (folder / "labelled.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def losses(folder: Path) -> list[float]:
    events = report.read(folder / "report")[0]
    found = [event.metrics for event in events if isinstance(event, report.Progress)]
    return [metrics["train_loss"] for metrics in found if "train_loss" in metrics]


def command(component: str, model: Path, data: Path, folder: Path, *arguments: str) -> list[str]:
    places = ["--model", str(model), "--data", str(data), "--tuned", str(folder / "tuned"), *arguments]
    if component == "finetune_transformers":
        places += ["--checkpoints", str(folder / "checkpoints")]
    options = ["--steps", "20", "--batch_size", "8", "--length", "10", "--learning_rate", "0.01"]
    return ["-m", "allranks.runtime", str(COMPONENTS / component / "train.py"), *places, *options]


def check(ended: Ended, ranks: int, folder: Path) -> None:
    assert set(ended.codes) == {0}, ended
    assert f"{ranks} ranks: " in ended.output
    assert losses(folder)[-1] < losses(folder)[0] / 2, "this training learns nothing"
    assert (folder / "tuned/model.safetensors").is_file()
    assert (folder / "tuned/tokenizer.json").is_file()


@pytest.mark.slow
@needs_model
def test_the_trainer(model: Path, data: Path, tmp_path: Path) -> None:
    """By the platform; under each of its launches the Trainer is tried in tests/docs/test_stacks.py."""
    (data / "labelled.jsonl").unlink()
    variables = environment(tmp_path, ["finetune_transformers"])
    started = [sys.executable, *command("finetune_transformers", model, data / "count.txt", tmp_path)]
    check(by_platform(PyTorch(1), 2, started, tmp_path, variables), 2, tmp_path)


@pytest.mark.slow
@needs_model
def test_accelerate(model: Path, data: Path, tmp_path: Path) -> None:
    variables = environment(tmp_path, ["finetune_accelerate", "finetune_transformers"])
    started = [sys.executable, *command("finetune_accelerate", model, data / "count.txt", tmp_path)]
    check(by_platform(PyTorch(2), 1, started, tmp_path, variables), 2, tmp_path)


@pytest.mark.slow
@needs_model
def test_ranks_that_would_train_alone_are_stopped(model: Path, data: Path, tmp_path: Path) -> None:
    variables = environment(tmp_path, ["finetune_transformers"]) | {"ACCELERATE_USE_CPU": "false"}
    started = [sys.executable, *command("finetune_transformers", model, data / "count.txt", tmp_path)]
    ended = by_platform(PyTorch(2), 1, started, tmp_path, variables)
    assert ended.codes == [2, 2], ended
    for rank, error in enumerate(ended.errors):
        assert f"rank {rank} of 2 (launcher pytorch): the library would train alone" in error
        assert "Traceback" not in error


def test_texts_of_a_folder(code: Importer, data: Path) -> None:
    texts = code("finetune_transformers", "texts")
    found = texts.read(data / "labelled.jsonl")
    assert found.texts[:2] == ("one", "one two")
    assert found.labels[:2] == ("0", "1")
    assert texts.read(data / "count.txt").labels is None
    with pytest.raises(InputError, match="20 labels for 21 texts"):
        texts.read(data)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", " \n", "no text"),
        ("a.bin", "text", "no text"),
        ("a.jsonl", '{"text": "x"}\n{"words": "x"}', "a.jsonl:2: not a text"),
        ("a.jsonl", "x", "a.jsonl:1: not a text"),
    ],
)
def test_bad_texts_are_refused(code: Importer, tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        code("finetune_transformers", "texts").read(tmp_path)


@pytest.mark.slow
@needs_model
def test_examples_of_both_tasks(code: Importer, model: Path, data: Path) -> None:
    texts = code("finetune_transformers", "texts")
    pretrained = code("finetune_transformers", "pretrained")
    _, tokenizer = pretrained.load(model, "causal", texts.read(data / "count.txt"))
    pieces = pretrained.examples(tokenizer, "causal", texts.read(data / "count.txt"), 10)
    assert len(pieces) == 40  # of 401 tokens, with the end
    assert pieces[0]["input_ids"].tolist() == pieces[0]["labels"].tolist() == [2, 3, 4, 5, 6] * 2

    labelled = texts.read(data / "labelled.jsonl")
    classifier, tokenizer = pretrained.load(model, "classification", labelled)
    assert classifier.config.id2label == {0: "0", 1: "1"}
    second = pretrained.examples(tokenizer, "classification", labelled, 4)[1]
    assert second["input_ids"].tolist() == [2, 3, 0, 0]
    assert second["attention_mask"].tolist() == [1, 1, 0, 0]
    assert int(second["labels"]) == 1
    assert torch.isfinite(classifier(**{name: value[None] for name, value in second.items()}).loss)


@pytest.mark.slow
@needs_model
def test_a_folder_without_a_model_and_labels_that_lack_are_refused(code: Importer, model: Path, data: Path) -> None:
    texts = code("finetune_transformers", "texts").read(data / "count.txt")
    load = code("finetune_transformers", "pretrained").load
    with pytest.raises(InputError, match="a folder with a model for the task causal"):
        load(data, "causal", texts)
    with pytest.raises(InputError, match="0 different labels"):
        load(model, "classification", texts)
    pretrained = code("finetune_transformers", "pretrained")
    _, tokenizer = load(model, "causal", texts)
    with pytest.raises(InputError, match="401 tokens"):
        pretrained.examples(tokenizer, "causal", texts, 500)


def test_ranks_that_are_not_one_training_are_refused(code: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
    parallel = code("finetune_transformers", "parallel")
    env = RankEnv(rank=1, world_size=3, local_rank=1, local_world_size=3, launcher="torchrun")
    parallel.check_world(env, 3)
    with pytest.raises(InputError, match="the library would train on 2 ranks"):
        parallel.check_world(env, 2)
    with pytest.raises(InputError, match="8 for 3 ranks"):
        parallel.share(8, 3)

    layer = torch.nn.Linear(2, 2)
    other = parallel.digest(torch.nn.Linear(2, 2))

    def gathered(found: list[str], mine: str) -> None:
        found[:] = [mine, mine, other]

    monkeypatch.setattr(parallel.distributed, "all_gather_object", gathered)
    with pytest.raises(InputError, match=r"ranks 2 of 3 \(launcher torchrun\): other weights than rank 0"):
        parallel.check_weights(env, layer)
    monkeypatch.setattr(
        parallel.distributed, "all_gather_object", lambda found, mine: found.__setitem__(slice(None), [mine] * 3)
    )
    parallel.check_weights(env, layer)
