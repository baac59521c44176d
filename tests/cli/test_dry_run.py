"""`allranks run --dry-run`: everything that would be started, and nothing that is."""

from pathlib import Path

import pytest

from allranks_command import called, write

PIPELINE = """\
    type: pipeline
    inputs: {lr: 0.1}
    jobs:
      prepare:
        type: command
        command: echo data > ${{outputs.data}}
        environment: azureml:cpu:1
        outputs: {data: {type: uri_file}}
      train:
        type: command
        command: touch started; echo ${{inputs.lr}} ${{inputs.data}}
        environment: azureml:cpu:1
        inputs: {lr: "${{parent.inputs.lr}}", data: "${{parent.jobs.prepare.outputs.data}}"}
        distribution: {type: pytorch, process_count_per_instance: 2}
        resources: {instance_count: 2}
        environment_variables: {HF_TOKEN: hunter2, STORAGE_CONNECTION_STRING: hunter2, NCCL_DEBUG: INFO}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "pipeline.yml", PIPELINE)
    return tmp_path


def test_it_prints_steps_layout_commands_and_the_environment_of_each_rank(folder: Path) -> None:
    done = called("run", "pipeline.yml", "--dry-run", "--instances", "loopback", "--set", "lr=0.5", folder=folder)
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    for expected in (
        "inputs lr number 0.5",
        "after prepare",
        "defined in pipeline.yml:9",
        "HF_TOKEN ***",
        "STORAGE_CONNECTION_STRING ***",
        "NCCL_DEBUG INFO",
        "AZUREML_NODE_COUNT 2",
        "WORLD_SIZE 4",
        "NODE_RANK 0 0 1 1",
        "RANK 0 1 2 3",
        "LOCAL_RANK 0 1 0 1",
    ):
        assert expected in lines
    titles = [line.rstrip(" ─") for line in lines if line[:1].isdigit()]
    assert titles == ["1 prepare 1 process", "2 train pytorch 2 x 2"]
    assert any(line.startswith("rendered touch started; echo 0.5 ") for line in lines)
    assert any(line.startswith("MASTER_ADDR 127.") for line in lines)
    assert any(line.startswith("MASTER_PORT ") for line in lines)
    assert str(folder / "pipeline.yml") in lines
    assert "hunter2" not in done.out
    assert [path.name for path in folder.iterdir()] == ["pipeline.yml"]


def test_as_json(folder: Path) -> None:
    done = called("run", "pipeline.yml", "--dry-run", "--json", folder=folder)
    prepare, train = done.json["steps"]
    assert (done.code, done.err) == (0, "")
    assert train["needs"] == ["prepare"]
    assert (train["distribution"], train["instance_count"], train["process_count_per_instance"]) == ("pytorch", 2, 2)
    assert train["rendered_command"].startswith("touch started; echo 0.1 /")
    assert train["shared_variables"]["WORLD_SIZE"] == "4"
    assert [
        (rank["variables"]["RANK"], rank["variables"]["LOCAL_RANK"], rank["variables"]["NODE_RANK"])
        for rank in train["ranks"]
    ] == [("0", "0", "0"), ("1", "1", "0"), ("2", "0", "1"), ("3", "1", "1")]
    assert [rank["rank"] for rank in prepare["ranks"]] == [0]
    assert train["environment_variables"]["HF_TOKEN"] == train["shared_variables"]["HF_TOKEN"] == "***"
    assert "hunter2" not in done.out
    assert [path.name for path in folder.iterdir()] == ["pipeline.yml"]
