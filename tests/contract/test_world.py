"""What a job was declared with, compared with what came up."""

import json

import pytest

from allranks.contract import world
from allranks.contract.rank_env import RankEnv
from allranks.contract.variables import DEFAULT_JOIN_SECONDS, ELASTIC_INSTANCES, JOIN_SECONDS, join_seconds
from allranks.contract.world import detect
from allranks.errors import InputError

HALF = RankEnv(world_size=2, local_world_size=2, launcher="mpi")


def test_a_world_that_is_smaller_than_declared_is_refused() -> None:
    with pytest.raises(InputError, match="2 ranks on 1 of the job's 3 instances") as raised:
        world.check(HALF, {"AZUREML_NODE_COUNT": "3"})
    assert "6 ranks: 2 on each of the 3 instances" in str(raised.value)


def tf_config(**cluster: list[str]) -> dict[str, str]:
    azure = {"AZUREML_NODE_COUNT": "3", "AZUREML_CR_NODE_RANK": "0"}
    return azure | {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})}


@pytest.mark.parametrize(
    ("environ", "used"),
    [
        (tf_config(worker=["10.0.0.4:2222", "10.0.0.5:2222"], ps=["10.0.0.4:2223"]), "2 of the job's 3"),
        (tf_config(worker=["10.0.0.4:2222"]), "1 of the job's 3"),
    ],
)
def test_instances_without_a_task_are_refused(environ: dict[str, str], used: str) -> None:
    with pytest.raises(InputError, match=f"TF_CONFIG: tasks on {used} instances: 10.0.0.4") as raised:
        world.check(detect(environ), environ)
    assert "a worker or a parameter server on each of the 3 instances" in str(raised.value)
    assert f"set distribution.worker_count to 3, or resources.instance_count to {used[0]}" in str(raised.value)


@pytest.mark.parametrize(
    "environ",
    [
        tf_config(worker=["a:1", "b:1"], ps=["c:1"]),
        {"TF_CONFIG": tf_config(worker=["a:1"])["TF_CONFIG"]},
    ],
    ids=["parameter server", "outside Azure ML"],
)
def test_tasks_on_all_instances_are_accepted(environ: dict[str, str]) -> None:
    world.check(detect(environ), environ)


@pytest.mark.parametrize(
    ("launcher", "variables"),
    [
        ("mpi", {}),
        ("mpi", {"AZUREML_NODE_COUNT": "1"}),
        ("torchrun", {"AZUREML_NODE_COUNT": "3", "TORCHELASTIC_MAX_RESTARTS": "1"}),
        ("ray", {"AZUREML_NODE_COUNT": "3"}),
    ],
)
def test_a_world_that_may_be_as_it_is(launcher: str, variables: dict[str, str]) -> None:
    world.check(RankEnv(world_size=2, local_world_size=2, launcher=launcher), variables)


@pytest.mark.parametrize(
    ("launcher", "variables", "full"),
    [
        ("pytorch", {}, 3),
        ("pytorch", {ELASTIC_INSTANCES: "2:4"}, 4),
        ("pytorch", {"AZUREML_NODE_COUNT": "3", ELASTIC_INSTANCES: " 3:4 "}, 4),
        ("torchrun", {"AZUREML_NODE_COUNT": "4", "TORCHELASTIC_MAX_RESTARTS": "1"}, 4),
        ("torchrun", {"AZUREML_NODE_COUNT": "4"}, 3),
        ("torchrun", {"TORCHELASTIC_MAX_RESTARTS": "1"}, 3),
    ],
)
def test_the_instances_that_settings_are_meant_for(launcher: str, variables: dict[str, str], full: int) -> None:
    env = RankEnv(world_size=6, local_world_size=2, instance_count=3, launcher=launcher)
    assert world.full_instances(env, variables) == full


def test_a_program_that_cannot_keep_the_batch_refuses_fewer_instances() -> None:
    env = RankEnv(world_size=6, local_world_size=2, instance_count=3, launcher="pytorch")
    world.require_all(env, {})
    with pytest.raises(InputError, match="world size: 3 of the 4 instances that the batch of a step is meant for"):
        world.require_all(env, {ELASTIC_INSTANCES: "3:4"})


@pytest.mark.parametrize("limits", ["4", "0:4", "4:3", "1_0:4", "1:", "4:5", "1:2"])
def test_a_range_that_the_instances_are_not_in_is_refused(limits: str) -> None:
    env = RankEnv(world_size=3, instance_count=3, launcher="pytorch")
    with pytest.raises(InputError, match=f"environment variable {ELASTIC_INSTANCES}"):
        world.full_instances(env, {ELASTIC_INSTANCES: limits})


def test_an_instance_has_its_address_where_azure_ml_lists_it() -> None:
    listed = {"AZ_BATCH_HOST_LIST": "10.0.0.4,10.0.0.5"}
    names = [world.instance_name(number, variables) for number in (1, 2) for variables in (listed, {})]
    assert names == ["instance 1 (10.0.0.5)", "instance 1", "instance 2", "instance 2"]


def test_the_bound_of_the_first_rendezvous() -> None:
    assert join_seconds({}) == DEFAULT_JOIN_SECONDS
    assert join_seconds({}, 5.0) == 5.0
    assert join_seconds({JOIN_SECONDS: "1800"}, 5.0) == 1800.0
    with pytest.raises(InputError, match=JOIN_SECONDS):
        join_seconds({JOIN_SECONDS: "soon"})
