"""The language model's pipelines: they compile for both launches, and one is run as a user runs it, small."""

import json
import shutil
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from allranks_command import allranks
from compiled_jobs import complaints

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
PATIENCE = 600.0
"""Seconds in which training has to come to an end on a machine that has other things to do as well."""
SMALL = {
    "pattern": "**/*.py",
    "vocabulary_size": 400,
    "validation_fraction": 0.2,
    "max_seq_length": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "hidden_size": 64,
    "max_steps": 60,
    "per_device_train_batch_size": 8,
    "learning_rate": 0.01,
    "eval_steps": 30,
}


@pytest.fixture(scope="module")
def pipelines(pipeline_file: Callable[[str], ModuleType]) -> dict[str, ModuleType]:
    return {name: pipeline_file(name) for name in ("language_model", "compare_strategies")}


@pytest.mark.parametrize("launch", ["pytorch", "mpi"])
def test_the_launch_decides_how_training_is_started(pipelines: dict[str, ModuleType], launch: str) -> None:
    job = pipelines["language_model"].language_model(launch=launch, strategy="deepspeed", instance_count=3)
    assert complaints(job) == {}
    assert list(job.jobs) == ["prepare", "train", "evaluate", "sample", "register"]
    jobs = job._to_rest_object().properties.jobs
    assert jobs["train"]["distribution"]["distribution_type"].lower() == launch
    assert jobs["evaluate"]["distribution"]["distribution_type"].lower() == "pytorch"
    for step in ("train", "evaluate"):
        assert jobs[step]["resources"]["instance_count"] == "${{parent.inputs.instance_count}}"
        count = jobs[step]["distribution"]["process_count_per_instance"]
        assert count == "${{parent.inputs.processes_per_instance}}"


def test_an_unknown_launch_is_refused(pipelines: dict[str, ModuleType]) -> None:
    with pytest.raises(ValueError, match="launch is 'slurm'; give one of pytorch, horovod, mpi"):
        pipelines["language_model"].language_model(launch="slurm")


@pytest.mark.recipe
def test_every_strategy_trains_the_same_and_is_compared(pipelines: dict[str, ModuleType]) -> None:
    job = pipelines["compare_strategies"].compare_strategies()
    assert complaints(job) == {}
    jobs = job._to_rest_object().properties.jobs
    trainings = {name: step["inputs"] for name, step in jobs.items() if "strategy" in step["inputs"]}
    assert list(trainings) == ["ddp", "fsdp", "zero_1", "zero_2", "zero_3"]
    told = {"strategy", "deepspeed_stage"}
    alike = [{name: value for name, value in given.items() if name not in told} for given in trainings.values()]
    assert all(given == alike[0] for given in alike)
    compared = [value["value"] for name, value in jobs["compare"]["inputs"].items() if name.startswith("history")]
    assert sorted(compared) == sorted(f"${{{{parent.jobs.{name}.outputs.history}}}}" for name in trainings)


def test_strategies_are_chosen(pipelines: dict[str, ModuleType]) -> None:
    compare_strategies = pipelines["compare_strategies"].compare_strategies
    job = compare_strategies(strategies="zero_0,horovod")
    assert complaints(job) == {}
    jobs = job._to_rest_object().properties.jobs
    assert list(jobs) == ["prepare", "zero_0", "horovod", "compare"]
    assert jobs["horovod"]["distribution"]["distribution_type"].lower() == "mpi"
    assert job.jobs["horovod"].component.name == "allranks_train_language_model_horovod"
    with pytest.raises(ValueError, match="strategies has 'zero_4'; give some of ddp,fsdp,zero_0"):
        compare_strategies(strategies="ddp,zero_4")


@pytest.mark.slow
@pytest.mark.recipe
@pytest.mark.timeout(900)
def test_from_texts_to_a_registered_model_by_deepspeed_under_mpi(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    for package in ("json", "email", "logging", "http"):
        shutil.copytree(Path(sysconfig.get_path("stdlib"), package), texts / package)
    given: dict[str, Any] = SMALL | {"folder": texts, "launch": "mpi", "strategy": "deepspeed", "prompt": 'print("'}
    given |= {"maximum_perplexity": 55}
    settings = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    ended = allranks("run", PIPELINES / "language_model.py", *settings, "--json", folder=tmp_path, patience=PATIENCE)
    assert ended.code == 0, ended.err
    run = ended.json
    steps = {step["name"]: step for step in run["steps"]}
    assert {name: step["status"] for name, step in steps.items()} == dict.fromkeys(steps, "Completed")
    places = [(rank["instance_rank"], rank["local_rank"]) for rank in steps["train"]["ranks"]]
    assert places == [(0, 0), (0, 1), (1, 0), (1, 1)]
    logged = set(steps["train"]["metrics"])
    assert logged >= {"train_loss", "learning_rate", "gradient_norm", "tokens_per_second", "validation_loss"}
    assert "mfu" not in logged  # the peak of a CPU is not known

    outputs = {name: Path(path) for name, path in run["outputs"].items()}
    history = json.loads(outputs["history"].read_text())
    assert (history["strategy"], history["deepspeed_stage"], history["launcher"]) == ("deepspeed", 2, "mpi")
    assert [point["step"] for point in history["points"]] == [1, 10, 20, 30, 40, 50, 60]
    metrics = json.loads((outputs["metrics"] / "metrics.json").read_text())
    assert metrics["perplexity"] < 55 < metrics["unigram_perplexity"] / 2.5
    assert outputs["sample"].read_text().startswith('print("')
    registration = json.loads((outputs["registration"] / "registration.json").read_text())
    assert (registration["name"], registration["version"]) == ("language-model", "1")
    assert (registration["metric"], registration["value"]) == ("perplexity", metrics["perplexity"])
