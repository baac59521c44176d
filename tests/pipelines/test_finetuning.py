"""Both pipelines that fine-tune, run as a user runs them, small: on 2 emulated instances x 2 processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from allranks_command import allranks

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
PATIENCE = 600.0
"""Seconds in which training has to come to an end on a machine that has other things to do as well."""

SMALL = {"packages": "email,logging", "hidden_size": 64, "num_hidden_layers": 2, "pretraining_steps": 40}

pytestmark = [pytest.mark.slow, pytest.mark.recipe, pytest.mark.timeout(900), pytest.mark.xdist_group("finetuning")]


def run(name: str, folder: Path, **settings: Any) -> Any:
    given = [word for key, value in (SMALL | settings).items() for word in ("--set", f"{key}={value}")]
    # The ranks have more threads than cores otherwise, and spin.
    ended = allranks(
        "run", PIPELINES / f"{name}.py", *given, "--json", folder=folder, patience=PATIENCE, OMP_NUM_THREADS="1"
    )
    assert ended.code == 0, ended.err
    return ended.json


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of both pipelines: the second one reuses the base model of the first one."""
    return tmp_path_factory.mktemp("finetuning")


@pytest.fixture(scope="module")
def finetuned(folder: Path) -> Any:
    return run("finetuning", folder, per_device_train_batch_size=4)


def outputs(run: Any) -> dict[str, Path]:
    return {name: Path(path) for name, path in run["outputs"].items()}


def test_an_adapter_lowers_the_perplexity_and_the_model_is_registered(finetuned: Any) -> None:
    steps = {step["name"]: step for step in finetuned["steps"]}
    assert {name: step["status"] for name, step in steps.items()} == dict.fromkeys(steps, "Completed")
    for name in ("train", "evaluate"):
        places = [(rank["instance_rank"], rank["local_rank"]) for rank in steps[name]["ranks"]]
        assert places == [(0, 0), (0, 1), (1, 0), (1, 1)]
    metrics = json.loads((outputs(finetuned)["metrics"] / "metrics.json").read_text())
    assert metrics["perplexity"] <= 0.7 * metrics["baseline_perplexity"]
    # What training computed on its own held-out examples: the adapter there, merged weights here.
    (logged,) = steps["train"]["metrics"]["eval_perplexity"]
    assert metrics["perplexity"] == pytest.approx(logged["value"], rel=1e-4)
    registration = json.loads((outputs(finetuned)["registration"] / "registration.json").read_text())
    assert registration["version"] == "1"
    assert registration["value"] == pytest.approx(metrics["perplexity_reduction"])


def test_the_history_is_one_that_trainings_are_compared_by(finetuned: Any) -> None:
    history = json.loads(outputs(finetuned)["history"].read_text())
    assert history["trained_parameters"] < 0.05 * history["parameters"]
    assert (history["world_size"], history["instance_count"], history["strategy"]) == (4, 2, "ddp")
    assert [point["step"] for point in history["points"]] == [1, 10, 20, 30, 40, 50, 60]
    assert set(history["points"][0]) == {"step", "loss", "seconds", "samples", "peak_memory"}
    assert history["points"][-1]["loss"] < history["points"][0]["loss"]


def test_merged_weights_compute_what_base_and_adapter_compute(finetuned: Any) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    adapter = outputs(finetuned)["adapter"]
    base = Path(finetuned["page"]).parent / "create/named-outputs/model"
    merged = outputs(finetuned)["model"] / "artifacts/huggingface"
    tokenizer = AutoTokenizer.from_pretrained(merged)
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What does logging.info do?"}], return_tensors="pt", return_dict=True
    )["input_ids"]
    with torch.no_grad():
        plain = AutoModelForCausalLM.from_pretrained(base)
        before = plain(ids).logits
        apart = PeftModel.from_pretrained(plain, adapter)(ids).logits
        together = AutoModelForCausalLM.from_pretrained(merged)(ids).logits
    assert torch.allclose(apart, together, atol=1e-5)
    assert not torch.allclose(before, together, atol=1e-2)


def test_the_model_is_served_without_this_project(finetuned: Any) -> None:
    import mlflow.pyfunc
    import pandas as pd

    model = mlflow.pyfunc.load_model(str(outputs(finetuned)["model"]))
    prompts = pd.DataFrame({"prompt": ["What does logging.info do?", "Which arguments does email.message take?"]})
    answers = model.predict(prompts, params={"max_new_tokens": 5})
    assert len(answers) == 2
    assert all(isinstance(answer, str) for answer in answers)


@pytest.mark.usefixtures("finetuned")
def test_a_classifier_is_better_than_the_largest_class(folder: Path) -> None:
    found = run("text_classification", folder, num_train_epochs=1, minimum_accuracy=0.7, processes_per_instance=1)
    metrics = json.loads((outputs(found)["metrics"] / "metrics.json").read_text())
    matrix = json.loads((outputs(found)["metrics"] / "confusion_matrix.json").read_text())["data"]
    assert matrix["class_labels"] == ["email", "logging"]
    rows = [sum(row) for row in matrix["matrix"]]
    assert sum(rows) == metrics["count"]
    assert metrics["accuracy"] > max(rows) / sum(rows) + 0.1
    registration = json.loads((outputs(found)["registration"] / "registration.json").read_text())
    assert registration["version"] == "1"
    history = json.loads(outputs(found)["history"].read_text())
    assert history["world_size"] == 2

    import mlflow.pyfunc
    import pandas as pd

    served = mlflow.pyfunc.load_model(str(outputs(found)["model"]))
    table = served.predict(pd.DataFrame({"text": ["Parse an email header into its parts.", "Flush the log handler."]}))
    assert list(table.columns) == ["label", "score"]
    assert set(table["label"]) <= {"email", "logging"}
