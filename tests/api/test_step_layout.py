"""`allranks.layout` on nodes of any origin. tests/bad_inputs has the layouts that it refuses."""

from pathlib import Path
from typing import Any

import pytest
from azure.ai.ml import MpiDistribution, PyTorchDistribution, command, load_component, load_job
from azure.ai.ml.dsl import pipeline
from azure.ai.ml.entities import Command
from azure.ai.ml.sweep import Choice

import allranks
from allranks.library import (
    run_ray,
    run_tensorflow,
    run_tensorflow_parameter_server,
    run_torchrun,
    train_image_classifier,
)

SPEC = """\
type: command
name: own
version: "1"
command: python train.py
environment: azureml:own:1
distribution: {type: mpi}
resources: {instance_count: 1, docker_args: --ipc=host}
environment_variables: {KEPT: "1"}
"""


def loaded(folder: Path) -> Any:
    (folder / "own.yaml").write_text(SPEC)
    return load_component(folder / "own.yaml")()


def from_job(folder: Path) -> Any:
    loaded(folder)
    (folder / "job.yml").write_text("type: pipeline\njobs:\n  a: {type: command, component: file:./own.yaml}\n")
    return load_job(folder / "job.yml").jobs["a"]


def commanded(_folder: Path) -> Command:
    return command(
        command="python train.py",
        environment="azureml:own:1",
        distribution=MpiDistribution(),
        environment_variables={"KEPT": "1"},
        docker_args="--ipc=host",
    )


@pytest.mark.parametrize("make", [loaded, from_job, commanded])
def test_anybodys_node_gets_its_own_layout(make: Any, tmp_path: Path) -> None:
    node = make(tmp_path)
    before = node.resources, node.distribution
    assert allranks.layout(node, 2, 4) is node
    assert (node.resources.instance_count, node.resources.docker_args) == (2, "--ipc=host")
    assert node.distribution == MpiDistribution(process_count_per_instance=4)
    assert before[0] is not node.resources
    assert before[1].process_count_per_instance is None
    variables = dict(node.environment_variables)
    allranks.layout(node, size="nd96asr_v4")
    assert node.environment_variables == {**variables, "ALLRANKS_SIZE": "Standard_ND96asr_v4"}
    resources = node.resources
    assert (resources.instance_type, resources.instance_count, resources.shm_size) == ("Standard_ND96asr_v4", 2, "450g")
    assert node.distribution == MpiDistribution(process_count_per_instance=8)


def test_steps_of_a_component_do_not_share_a_layout() -> None:
    first, second = (train_image_classifier(data="folder") for _ in range(2))
    allranks.layout(first, instance_count=4, process_count_per_instance=8)
    assert second.resources is None or second.resources.instance_count is None
    assert second.distribution == train_image_classifier.component.distribution == PyTorchDistribution()


def test_inputs_of_the_pipeline() -> None:
    @pipeline
    def one(instances=2, processes=4):
        allranks.layout(train_image_classifier(data="folder"), instances, processes)
        allranks.layout(run_tensorflow(), instances)

    train, workers = one().jobs.values()
    assert str(train.resources.instance_count) == "${{parent.inputs.instances}}"
    assert str(train.distribution.process_count_per_instance) == "${{parent.inputs.processes}}"
    assert str(workers.distribution.worker_count) == "${{parent.inputs.instances}}"


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (run_torchrun, {"instance_count": 2, "size": "ND96asr_v4"}, {"process_count_per_instance": None}),
        (run_torchrun, {"process_count_per_instance": 1}, {"process_count_per_instance": 1}),
        (run_tensorflow, {"instance_count": 4, "size": "ND96asr_v4"}, {"worker_count": 4}),
        (run_tensorflow_parameter_server, {"instance_count": 3}, {"worker_count": 3, "parameter_server_count": 1}),
        (run_ray, {"instance_count": 3}, {"type": "ray"}),
    ],
)
def test_a_distribution_keeps_its_type(function: Any, given: dict[str, Any], expected: dict[str, Any]) -> None:
    node = allranks.layout(function(), **given)
    assert type(node.distribution) is type(function.component.distribution)
    assert expected.items() <= vars(node.distribution).items()


def test_the_trials_of_a_sweep() -> None:
    step = train_image_classifier(data="folder", learning_rate=Choice([0.1, 0.2]))
    sweep = step.sweep(primary_metric="accuracy", goal="maximize", sampling_algorithm="grid")
    allranks.layout(sweep, 2, size="ND96asr_v4")
    assert sweep.trial.distribution == PyTorchDistribution(process_count_per_instance=8)
    assert sweep.trial.resources.instance_count == 2
    assert sweep.trial.command.startswith("export ALLRANKS_SIZE=Standard_ND96asr_v4 && ")


def test_a_registered_component(tmp_path: Path) -> None:
    (tmp_path / "job.yml").write_text(
        "type: pipeline\njobs:\n  a: {type: command, component: 'azureml:train:1', distribution: {type: pytorch}}\n"
        "  b: {type: command, component: 'azureml:train:1'}\n"
    )
    first, second = load_job(tmp_path / "job.yml").jobs.values()
    assert allranks.layout(first, 2, 4).distribution == PyTorchDistribution(process_count_per_instance=4)
    assert allranks.layout(second, 2).resources.instance_count == 2
    with pytest.raises(allranks.InputError, match="process_count_per_instance: the step has no distribution"):
        allranks.layout(second, 2, 4)


def test_a_parallel_step_has_instances_alone() -> None:
    from azure.ai.ml.parallel import RunFunction, parallel_run_function

    step = parallel_run_function(
        name="score",
        inputs={},
        outputs={},
        input_data="${{inputs.data}}",
        task=RunFunction(code=".", entry_script="score.py", environment="azureml:own:1"),
    )
    assert allranks.layout(step, 3).resources.instance_count == 3
    with pytest.raises(allranks.InputError, match="2; the parallel step starts the processes of an instance itself"):
        allranks.layout(step, 3, 2)
