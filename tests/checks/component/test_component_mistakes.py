"""Common mistakes of jobs in a component by itself: each is found once, at its line, and can be ignored there."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from allranks.checks.component import check
from allranks.cli.main import app
from component_projects import PYTHON
from pipeline_files import write

COMPONENT = """\
    type: command
    name: train
    version: 1.0.0
    inputs: {workers: {type: integer, default: 4}}
    outputs: {model: {type: uri_folder}}
    environment: {image: "pytorch/pytorch:2.8"}
    distribution: {type: pytorch, process_count_per_instance: 2}
    command: python train.py --num_workers ${{inputs.workers}} --model ${{outputs.model}}
    """
PIPELINE = """\
    type: pipeline
    name: tune
    version: 1.0.0
    jobs:
      train:
        type: command
        environment: azureml:torch:1
        distribution: {type: pytorch, process_count_per_instance: 2}
        command: torchrun train.py
    """


def found(path: Path) -> list[tuple[str, str]]:
    """The rule of each error and warning, with the text of its line."""
    lines = path.read_text().splitlines()
    findings = check([path])
    places = [(problem.rule, problem.where.rpartition(":")[2]) for problem in (*findings.errors, *findings.warnings)]
    return [(rule, lines[int(line.rstrip(")")) - 1].strip().partition(":")[0]) for rule, line in places]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("python train.py", "torchrun train.py", [("nested-launcher", "command")]),
        ("pytorch, process_count_per_instance: 2}", "pytorch}", []),
        (
            "pytorch, process_count_per_instance: 2}\n    command: python",
            "pytorch}\n    command: torchrun --log ${RANK} ",
            [("rank-expanded-once", "command")],
        ),
        (
            "pytorch, process_count_per_instance: 2}\n    command: python",
            "mpi}\n    command: python $NODE_RANK",
            [("mpi-variable", "command")],
        ),
        ("python train.py", "python train.py --node $NODE_RANK", []),
        ("train", "train", []),  # 8 workers of an instance, whose /dev/shm a step sets
        ("distribution", "resources: {instance_count: 2}\n    distribution", [("loader-workers", "resources")]),
        ("distribution", "resources: {instance_count: 2, shm_size: 64g}\n    distribution", []),
        ("pytorch:2.8", "pytorch", [("latest-image", "environment")]),
        (
            "distribution",
            "environment_variables: {OUT: '${{outputs.model}}'}\n    distribution",
            [("component-variables", "environment_variables")],
        ),
        (
            "distribution",
            "resources: {instance_type: Standard_ND96asr_v4, shm_size: 64g}\n    distribution",
            [("processes-per-gpu", "distribution")],
        ),
        (
            "distribution",
            "resources: {instance_count: '${{inputs.workers}}'}\n    distribution",
            [("count-binding", "resources")],
        ),
    ],
)
def test_the_mistakes_of_a_component(tmp_path: Path, old: str, new: str, expected: list[tuple[str, str]]) -> None:
    assert old in COMPONENT
    assert found(write(tmp_path, "component.yaml", COMPONENT.replace(old, new))) == expected


def test_a_comment_ignores_them_by_line_and_by_file(tmp_path: Path) -> None:
    nested = COMPONENT.replace("python train.py", "torchrun train.py")
    comment = "# allranks: ignore nested-launcher"
    for key, left in (("    type:", 0), ("    command:", 0), ("    outputs:", 1)):
        path = write(tmp_path, "component.yaml", nested.replace(key, f"    {comment}\n{key}", 1))
        assert len(found(path)) == left, key


def test_the_mistakes_of_a_function(tmp_path: Path) -> None:
    path = tmp_path / "component.py"
    moving = PYTHON.replace('"azureml:small:1"', 'Environment(image="python")')
    path.write_text(f"from azure.ai.ml.entities import Environment\n{moving}")
    assert [rule for rule, _ in found(path)] == ["latest-image"]
    path.write_text(path.read_text().replace('"python"),', '"python"),  # allranks: ignore latest-image'))
    assert found(path) == []


def test_the_mistakes_of_the_steps_of_a_pipeline_component(tmp_path: Path) -> None:
    assert found(write(tmp_path, "component.yaml", PIPELINE)) == [("nested-launcher", "command")]
    ignored = PIPELINE.replace("torchrun train.py", "torchrun train.py  # allranks: ignore nested-launcher")
    assert found(write(tmp_path, "component.yaml", ignored)) == []


def test_a_mistake_is_reported_once_and_a_command_job_has_the_same_rules(tmp_path: Path) -> None:
    write(tmp_path, "component.yaml", COMPONENT.replace("python train.py", "torchrun train.py"))
    job = "type: pipeline\njobs: {train: {type: command, component: ./component.yaml}}\n"
    inline = "type: command\nenvironment: azureml:x:1\ndistribution: {type: mpi}\ncommand: python t.py $NODE_RANK\n"
    for name, text, rule in (("pipeline.yml", job, "nested-launcher"), ("job.yml", inline, "mpi-variable")):
        done = CliRunner().invoke(app, ["check", str(write(tmp_path, name, text))])
        assert done.exit_code == 0, done.exception
        assert done.stderr.count(f"rule      {rule}") == 1
        assert name in done.stderr


LONG = "x" * 5000


@pytest.mark.parametrize(
    "keys",
    [
        "inputs: {a: {enum: true}}\ntags: {requires.a.b: ''}",
        f"code: {LONG}",
        "environment_variables: 3",
        "additional_includes: 7",
        f"environment: {LONG}",
        f"additional_includes: [{LONG}]\ncommand: python train.py",
    ],
    ids=["enum", "code", "variables", "includes", "environment", "a long include"],
)
def test_values_that_nobody_writes_are_errors(tmp_path: Path, keys: str) -> None:
    tree = {"environment": "azureml:x:1", "command": "ls", **yaml.safe_load(keys)}
    path = write(tmp_path, "a.yml", f"type: command\nname: a\n{yaml.safe_dump(tree)}")
    assert check([path]).errors
