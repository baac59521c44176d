"""finetune_text_classifier and evaluate_text_classifier: texts and pairs, labels and numbers, what is refused, figures.

Trainings on all ranks are in tests/pipelines/test_finetuning.py."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from finetuning import importer

from allranks.errors import InputError

Importer = Callable[[str, str], Any]

pytestmark = pytest.mark.slow

PAIRS = [
    {"first": "one two", "second": "two one", "same": 1, "closeness": 4.5, "colour": "red"},
    {"first": "one", "second": "three", "same": 0, "closeness": 0.5, "colour": "blue"},
    {"first": "three", "second": "three", "same": 1, "closeness": 5.0, "colour": "red"},
]


@pytest.fixture
def recipe(code: Importer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Any]:
    """Imports a module of the recipe."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return importer(code, "finetune_text_classifier")


@pytest.fixture
def part(recipe: Callable[[str], Any], tmp_path: Path) -> Any:
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, PAIRS)))
    return recipe("records").read(tmp_path / "pairs.jsonl", "data")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT that was made to fill gaps, of one small layer, and its tokenizer of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "one", "two", "three")
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(names)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    BertForMaskedLM(BertConfig(vocab_size=len(names), **shape)).save_pretrained(folder)
    return folder


def read(recipe: Callable[[str], Any], base: Path) -> tuple[Any, Any]:
    models = recipe("model_folder")
    folder = models.find(base, "base_model")
    return folder, models.read_tokenizer(folder)


def test_pairs_with_named_labels(recipe: Callable[[str], Any], base: Path, part: Any) -> None:
    texts, classifier = recipe("classified_texts"), recipe("classifier")
    folder, tokenizer = read(recipe, base)
    columns = texts.Columns("first", "second", "colour")
    texts.check(part, columns, "data")
    names = texts.label_names(part, columns)
    assert names == ["blue", "red"]
    assert texts.label_names(part, texts.Columns("first", "", "same")) == ["0", "1"]
    examples = texts.tokenize(part, columns, tokenizer, 16, names, "data")
    assert examples["input_ids"][0] == [2, 4, 5, 3, 5, 4, 3]
    assert list(examples["labels"]) == [1, 0, 1]
    single = texts.tokenize(part, texts.Columns("first", "", "colour"), tokenizer, 3, names, "data")
    assert single["input_ids"][0] == [2, 4, 3]
    head = recipe("train").head(names)
    model = classifier.load(folder, tokenizer.pad_token_id, **head)
    assert model.config.id2label == {0: "blue", 1: "red"}


def test_a_number_is_predicted_by_one_label(recipe: Callable[[str], Any], base: Path, part: Any) -> None:
    from transformers import DataCollatorWithPadding

    texts, classifier = recipe("classified_texts"), recipe("classifier")
    folder, tokenizer = read(recipe, base)
    columns = texts.Columns("first", "second", "closeness")
    examples = texts.tokenize(part, columns, tokenizer, 16, None, "data")
    assert list(examples["labels"]) == [4.5, 0.5, 5.0]
    model = classifier.load(folder, tokenizer.pad_token_id, **recipe("train").head(None))
    batch = DataCollatorWithPadding(tokenizer)([dict(example) for example in examples])
    output = model(**batch)
    mean = (output.logits[:, 0] - batch["labels"]).square().mean()
    assert torch.allclose(output.loss, mean)


def test_columns_and_labels_that_are_not_there_are_named(recipe: Callable[[str], Any], base: Path, part: Any) -> None:
    texts = recipe("classified_texts")
    _, tokenizer = read(recipe, base)
    with pytest.raises(InputError) as raised:
        texts.tokenize(part, texts.Columns("text", "other", "label"), tokenizer, 8, None, "validation_data")
    message = str(raised.value)
    for name in ("text_column: 'text'", "text_pair_column: 'other'", "label_column: 'label'"):
        assert f"input {name}, which validation_data does not have" in message
    same = part.filter(lambda record: record["same"] == 1)
    with pytest.raises(InputError, match="input label_column: 1 different labels in same"):
        texts.label_names(same, texts.Columns("first", "", "same"))
    with pytest.raises(InputError, match="validation_data, record 1: label 'blue'"):
        texts.tokenize(part, texts.Columns("first", "", "colour"), tokenizer, 8, ["red"], "validation_data")
    with pytest.raises(InputError, match="record 0: label 'red'"):
        texts.tokenize(part, texts.Columns("first", "", "colour"), tokenizer, 8, None, "data")
    with pytest.raises(InputError, match="record 0: \\[1\\]"):
        texts.tokenize(part, texts.Columns("same", "", "colour"), tokenizer, 8, ["blue", "red"], "data")


def test_a_model_that_cannot_classify_is_refused(recipe: Callable[[str], Any], base: Path, tmp_path: Path) -> None:
    for file in base.glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "config.json").write_text('{"model_type": "resnet"}')
    folder, tokenizer = read(recipe, tmp_path)
    with pytest.raises(InputError, match=r"input base_model: .*(ResNet|resnet|Unrecognized)"):
        recipe("classifier").load(folder, tokenizer.pad_token_id, num_labels=2)
    not_tuned, tokenizer = read(recipe, base)
    with pytest.raises(InputError, match=r"no weights for .*classifier"):
        recipe("classifier").load(not_tuned, tokenizer.pad_token_id)


def test_figures_of_labels_and_of_numbers(recipe: Callable[[str], Any]) -> None:
    scores = recipe("classifier")
    table = torch.tensor([[0, 0.5], [1, 0.5], [1, 1.0], [2, 2.0]], dtype=torch.float64)
    found = scores.metrics(table, [0, 1, 2, 2], regression=False)
    assert found["count"] == 4
    assert found["loss"] == 1.0
    assert found["accuracy"] == 0.75
    assert found["f1"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    # Gorodkin 2004: (c s - sum p t) / sqrt((s^2 - sum p^2) (s^2 - sum t^2)).
    assert found["mcc"] == pytest.approx((3 * 4 - (1 + 2 + 2)) / 10)
    numbers = scores.metrics(torch.tensor([[1.0, 0.0], [3.0, 1.0]], dtype=torch.float64), [1.0, 2.0], regression=True)
    assert numbers == {"count": 2, "loss": 0.5, "mae": 0.5, "pearson": pytest.approx(1.0)}
    constant = scores.metrics(torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64), [1.0, 2.0], regression=True)
    assert constant["pearson"] == 0.0


@pytest.mark.parametrize("world_size", [1, 3, 8])
def test_every_example_counts_once_whatever_the_number_of_ranks(
    recipe: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, world_size: int
) -> None:
    """The table is a sum over the ranks, which here run one after the other."""
    scoring = recipe("scoring")
    examples = [{"input_ids": [0] * length, "value": length} for length in (5, 1, 4, 2, 3, 9, 7)]
    calls = []

    def compute(batch: list[dict[str, Any]]) -> torch.Tensor:
        calls[-1] += 1
        assert 1 <= len(batch) <= 2
        return torch.tensor([[example["value"]] for example in batch])

    monkeypatch.setattr(scoring.distributed, "get_world_size", lambda: world_size)
    monkeypatch.setattr(scoring.distributed, "all_reduce", lambda table: None)
    total = torch.zeros(len(examples), 1, dtype=torch.float64)
    for rank in range(world_size):
        calls.append(0)
        monkeypatch.setattr(scoring.distributed, "get_rank", lambda rank=rank: rank)
        total += scoring.score_batches(torch.nn.Linear(1, 1), examples, 1, 2, compute)
    assert total[:, 0].tolist() == [example["value"] for example in examples]
    assert len(set(calls)) == 1, "ranks made different numbers of calls"
