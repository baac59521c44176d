"""finetune_language_model: what it refuses, which tokens it learns, and a training that is evicted and goes on."""

import json
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from component_processes import BOUND_SECONDS, clean, folder_of
from finetuning import RECIPE, recipe

from allranks.contract import produce
from allranks.contract.launch import Launch
from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime import started
from forked import Forked
from free_ports import free_port

Importer = Callable[[str, str], Any]

__all__ = ["recipe"]

pytestmark = pytest.mark.slow
"""One process of pytest imports Transformers, for all of these."""

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QUESTION = {"role": "user", "content": "What does len do?"}
ANSWER = {"role": "assistant", "content": "It returns the number of items."}
WRONG = {"role": "assistant", "content": "I do not know."}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of one small layer, not trained, with a byte-level tokenizer and a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("base")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([message["content"] for message in (QUESTION, ANSWER, WRONG)] * 2, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[0])
    fast.chat_template = CHATML
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=16,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        eos_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def tokenizing(recipe: Callable[[str], Any], base: Path) -> Any:
    tokenizer = recipe("model_folder").read_tokenizer(recipe("model_folder").find(base, "base_model"))
    return recipe("tokens").Tokenizing(tokenizer, 64)


def scored(example: dict[str, list[int]], tokenizing: Any) -> str:
    """The text of the tokens that are learned."""
    return str(tokenizing.tokenizer.decode([label for label in example["labels"] if label >= 0]))


@pytest.mark.parametrize(
    ("record", "learned"),
    [
        ({"messages": [QUESTION, ANSWER]}, "It returns the number of items.<|im_end|>\n"),
        ({"messages": [QUESTION, WRONG, QUESTION, WRONG]}, "I do not know.<|im_end|>\n" * 2),
        ({"prompt": [QUESTION], "completion": [ANSWER]}, "It returns the number of items.<|im_end|>\n"),
        ({"prompt": "Say it.", "completion": " I do."}, " I do.<|endoftext|>"),
        ({"text": "I do not know.", "messages": None}, "I do not know.<|endoftext|>"),
    ],
)
def test_what_is_learned_of_a_record(tokenizing: Any, record: dict[str, Any], learned: str) -> None:
    example = tokenizing(record, 0)
    assert scored(example, tokenizing) == learned
    assert len(example["labels"]) == len(example["input_ids"])


def test_of_a_preference_both_answers_follow_the_prompt(tokenizing: Any, recipe: Callable[[str], Any]) -> None:
    apart = {"prompt": [QUESTION], "chosen": [ANSWER], "rejected": [WRONG]}
    whole = {"chosen": [QUESTION, ANSWER], "rejected": [QUESTION, WRONG]}
    assert recipe("tokens").with_prompt(whole) == apart
    for record in (apart, whole):
        chosen, rejected = tokenizing.preference(record, 0)
        assert scored(chosen, tokenizing) == "It returns the number of items.<|im_end|>\n"
        assert scored(rejected, tokenizing) == "I do not know.<|im_end|>\n"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"messages": []}, r"record 3, messages: \[\]"),
        ({"messages": [{"role": "user"}]}, "record 3, messages"),
        ({"messages": [QUESTION]}, "no message of the role assistant"),
        ({"text": ""}, "a text that is not empty"),
        ({"text": None}, "record 3, prompt"),
        ({"prompt": "a", "completion": [ANSWER]}, "record 3, prompt"),
    ],
)
def test_an_invalid_record_is_named(tokenizing: Any, record: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        tokenizing(record, 3)


def test_a_template_that_cannot_render_the_messages_is_named(tokenizing: Any) -> None:
    tokenizing.tokenizer.chat_template = "{{ raise_exception('no system messages here') }}"
    with pytest.raises(InputError, match=r"input chat_template \(input data, record 0\): no system messages here"):
        tokenizing({"messages": [QUESTION, ANSWER]}, 0)


def test_long_examples_are_cut_off_and_those_without_anything_to_learn_are_known(
    recipe: Callable[[str], Any], tokenizing: Any
) -> None:
    tokens = recipe("tokens")
    short = tokens.Tokenizing(tokenizing.tokenizer, 4)({"messages": [QUESTION, ANSWER]}, 0)
    assert len(short["input_ids"]) == 4
    assert not tokens.scored(short)
    whole = tokens.Tokenizing(tokenizing.tokenizer, 64, completion_only=False)({"messages": [QUESTION, ANSWER]}, 0)
    assert whole["labels"] == whole["input_ids"]


def test_bad_files_are_refused(recipe: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    read = recipe("records").read
    for name, content, said in (
        ("a.jsonl", "", "no record"),
        ("b.jsonl", "no JSON", "JSON parse error"),
        ("c.txt", "text", ".txt"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=rf"input data.*{said}"):
            read(tmp_path / name, "data")
    with pytest.raises(InputError, match="the columns question"):
        recipe("tokens").example_columns(["question"])


def test_data_for_another_objective_are_refused(recipe: Callable[[str], Any]) -> None:
    from datasets import Dataset

    pairs = Dataset.from_list([{"prompt": "a", "chosen": "b", "rejected": "c"}])
    args = SimpleNamespace(objective="sft")
    with pytest.raises(InputError, match="input objective: sft, and the columns prompt, chosen, rejected in data"):
        recipe("train").examples(pairs, "data", args, None, None)


def test_a_model_of_another_kind_is_refused(recipe: Callable[[str], Any], base: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    models = recipe("model_folder")
    with pytest.raises(InputError, match=r"input base_model: no config.json"):
        models.find(tmp_path, "base_model")
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    BertForSequenceClassification(BertConfig(vocab_size=300, **shape)).save_pretrained(tmp_path)
    for file in base.glob("tokenizer*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    classifier = models.find(tmp_path, "base_model")
    with pytest.raises(InputError, match=r"input base_model: BertForSequenceClassification"):
        models.check_kind(classifier, models.read_config(classifier))

    language_model = models.find(base, "base_model")
    config = models.read_config(language_model)
    tokenizer = models.read_tokenizer(language_model)
    models.check_kind(language_model, config)
    with pytest.raises(InputError, match="65 tokens for a model of 64 positions"):
        models.check_fit(language_model, config, tokenizer, 65)
    config.vocab_size = 10
    with pytest.raises(InputError, match="a tokenizer of 299 tokens for 10 embeddings"):
        models.check_fit(language_model, config, tokenizer, 8)


def test_adapters_that_the_model_cannot_have_are_refused(recipe: Callable[[str], Any], base: Path) -> None:
    adapters = recipe("adapters")
    model = recipe("model_folder").load_causal(recipe("model_folder").find(base, "base_model"), torch.float32)
    adapters.check("all-linear", model)
    adapters.check("q_proj, v_proj", model)
    with pytest.raises(InputError, match="input target_modules: qkv, which this model does not have"):
        adapters.check("q_proj,qkv", model)
    from transformers import GPT2Config, GPT2LMHeadModel

    gpt = GPT2LMHeadModel(GPT2Config(vocab_size=10, n_positions=8, n_embd=8, n_layer=1, n_head=2))
    adapters.check("c_attn", gpt)


def test_what_a_machine_without_gpus_cannot_do_is_refused_by_name(recipe: Callable[[str], Any]) -> None:
    ranks = SimpleNamespace(device=torch.device("cpu"), local_rank=0)
    (qlora,) = recipe("adapters").check_quantization(ranks, "ddp")
    assert qlora.where == "input method"
    assert "qlora needs a GPU for each rank" in qlora.expected
    args = SimpleNamespace(
        strategy="fsdp", precision="float16", validation_data=Path("y"), validation_fraction=0.1, max_steps=0
    )
    found = [problem.where for problem in recipe("trainer_settings").problems(args, ranks)]
    inputs = ["strategy", "precision", "max_steps", "validation_fraction"]
    assert found == [f"input {name}" for name in inputs]


def test_a_full_output(recipe: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    args = SimpleNamespace(model=tmp_path / "model", checkpoints=tmp_path / "checkpoints", save_total_limit=2)
    ranks = SimpleNamespace(is_main=True, broadcast=lambda value: value)
    # The model, and with Adam's moments 2 checkpoints and the next.
    usage = SimpleNamespace(total=1 << 30, free=5000 + 4 * 3 * 100 * 3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    recipe("trainer_settings").check_room(args, 5000, 100, ranks)
    with pytest.raises(InputError, match=f"output checkpoints: 8.4 KiB free in {tmp_path}"):
        recipe("trainer_settings").check_room(args, 5000, 101, ranks)


def test_ranks_that_would_not_train_together_are_refused(recipe: Callable[[str], Any]) -> None:
    ranks = SimpleNamespace(rank=1, world_size=2, launcher="pytorch")
    recipe("trainer_settings").check_world(2, ranks)
    with pytest.raises(InputError, match=r"rank 1 of 2 \(launcher pytorch\): Transformers would train alone"):
        recipe("trainer_settings").check_world(1, ranks)


def test_an_eviction_ends_an_evaluation_and_the_trainer_saves(recipe: Callable[[str], Any]) -> None:
    progress, scoring = recipe("progress"), recipe("scoring")
    handler = signal.getsignal(signal.SIGTERM)
    try:
        watcher = progress.Progress(SimpleNamespace(any_rank=lambda flag: flag), 1, "text", 1)
        control = SimpleNamespace(should_save=False, should_training_stop=False, should_evaluate=True)
        scored: list[int] = []

        def compute(batch: list[dict[str, Any]]) -> torch.Tensor:
            scored.append(len(batch))
            if len(scored) == 2:
                signal.raise_signal(signal.SIGTERM)
            return torch.zeros(len(batch), 1)

        with started(), pytest.raises(progress.EvaluationEnded):
            scoring.score_batches(
                torch.nn.Linear(1, 1), [{"input_ids": [0]}] * 5, 1, 1, compute,
                lambda: watcher.on_prediction_step(None, None, control),
            )  # fmt: skip
        assert (scored, control.should_save, control.should_training_stop) == ([1, 1], True, True)
        # At a step, too, the evaluation would come before the save.
        watcher.on_step_end(None, None, control)
        assert not control.should_evaluate
    finally:
        signal.signal(signal.SIGTERM, handler)


def test_examples_that_share_a_sequence_do_not_attend_to_each_other(recipe: Callable[[str], Any], base: Path) -> None:
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling

    model = recipe("model_folder").load_causal(recipe("model_folder").find(base, "base_model"), torch.float32).eval()
    examples = [[5, 6, 7, 8], [9, 10, 11], [12, 13, 14, 15, 16]]
    packed = {"input_ids": [token for example in examples for token in example], "seq_lengths": [4, 3, 5]}
    batch = DataCollatorForLanguageModeling(pad_token_id=0, padding_free=True)([packed])
    batch.pop("labels")
    with torch.no_grad():
        together = model(**batch, use_cache=False).logits[0]
        apart = torch.cat([model(input_ids=torch.tensor([ids]), use_cache=False).logits[0] for ids in examples])
    assert torch.allclose(together, apart, atol=1e-5)


# Real trainings.


@pytest.fixture(scope="module")
def preferences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("preferences") / "pairs.jsonl"
    pairs = [
        {"prompt": [{"role": "user", "content": f"What is {number}?"}], "chosen": [ANSWER], "rejected": [WRONG]}
        for number in range(40)
    ]
    file.write_text("\n".join(map(json.dumps, pairs)))
    return file


def arguments(base: Path, data: Path, folder: Path, *more: str) -> list[str]:
    places = {"base_model": base, "data": data} | {
        name: folder / name for name in ("model", "adapter", "checkpoints", "history")
    }
    given = [word for name, place in places.items() for word in (f"--{name}", str(place))]
    return [*given, "--max_seq_length", "64", "--logging_steps", "1", *more]


def running(words: list[str], folder: Path, ranks: int) -> Iterator[Forked]:
    """Ranks of the recipe, whose outputs are out.RANK and err.RANK in the folder."""
    job = Launch(PyTorch(ranks), ("127.0.0.1",), ("localhost",), master_port=free_port())
    given = clean() | {"OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    for process in produce.processes(job):
        environ = given | produce.environment(job, process)
        output = folder / f"rank{process.rank}"
        yield Forked(folder_of(RECIPE) / "train.py", words, environ, folder, output)


@pytest.mark.recipe
def test_an_evicted_training_saves_on_every_rank_and_the_next_attempt_goes_on(
    base: Path, preferences: Path, tmp_path: Path
) -> None:
    """Direct preference optimization of all weights. One of two ranks is told to go."""
    words = arguments(
        base, preferences, tmp_path, "--objective", "dpo", "--method", "full", "--learning_rate", "0.003",
        "--per_device_train_batch_size", "2", "--validation_fraction", "0.2", "--save_steps", "1000",
        "--lr_scheduler_type", "constant",
    )  # fmt: skip
    # Far more steps than there are before the signal arrives, however busy the machine is.
    ranks = list(running([*words, "--max_steps", "1000"], tmp_path, 2))
    first = tmp_path / "rank0.out"
    deadline = time.monotonic() + BOUND_SECONDS
    try:
        while not (first.exists() and "step 3 of" in first.read_text()):
            assert all(rank.poll() is None for rank in ranks), (tmp_path / "rank0.err").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        ranks[1].send_signal(signal.SIGTERM)
        assert [rank.wait(BOUND_SECONDS) for rank in ranks] == [143, 143]
    finally:
        for rank in ranks:
            rank.send_signal(signal.SIGKILL)
    (saved,) = (tmp_path / "checkpoints").glob("checkpoint-*")
    step = int(saved.name.removeprefix("checkpoint-"))
    assert 3 <= step < 1000
    total = step + 6
    assert not (tmp_path / "model/MLmodel").exists()

    # As if the next one had been cut off while it was written.
    (tmp_path / f"checkpoints/checkpoint-{total - 1}").mkdir()
    ranks = list(running([*words, "--max_steps", str(total)], tmp_path, 2))
    assert [rank.wait(BOUND_SECONDS) for rank in ranks] == [0, 0], (tmp_path / "rank0.err").read_text()
    output = first.read_text()
    assert f"step {step} of" not in output
    assert f"step {step + 1} of {total}" in output
    assert "rewards/margins " in output, output
    margin = float(output.partition("rewards/margins ")[2].partition(",")[0])
    assert margin > 0.1
    assert (tmp_path / "model/MLmodel").is_file()
    history = json.loads((tmp_path / "history").read_text())
    assert [(point["step"], point["samples"]) for point in history["points"]] == [
        (step, 4) for step in range(1, total + 1)
    ]
    assert (history["sample"], [evaluation["step"] for evaluation in history["evaluations"]]) == ("example", [total])


def test_too_few_examples_for_the_ranks_are_one_message_before_the_first_step(
    on_one_rank: Callable[..., None], base: Path, preferences: Path, tmp_path: Path
) -> None:
    words = arguments(base, preferences, tmp_path, "--objective", "dpo", "--per_device_train_batch_size", "41")
    with pytest.raises(InputError, match="input data: 40 examples"):
        on_one_rank(RECIPE, "train", *words)
    assert not list(tmp_path.glob("checkpoints/*"))
    assert not (tmp_path / "model").exists()
