import json

import pytest

from allranks.contract import tensorflow
from allranks.contract.rank_env import RankEnv

CLUSTER = {"chief": ["a:1"], "worker": ["b:2", "c:2"], "ps": ["b:3"]}


def tf_config(role: str, index: int, cluster: dict[str, list[str]] = CLUSTER) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}


@pytest.mark.parametrize(
    ("role", "index", "expected"),
    [
        ("chief", 0, RankEnv(0, 0, 4, 1, 0, 3, "a", 1, "tensorflow", "chief")),
        ("worker", 0, RankEnv(1, 0, 4, 2, 1, 3, "a", 1, "tensorflow", "worker")),
        ("worker", 1, RankEnv(2, 0, 4, 1, 2, 3, "a", 1, "tensorflow", "worker")),
        ("ps", 0, RankEnv(3, 1, 4, 2, 1, 3, "a", 1, "tensorflow", "ps")),
    ],
)
def test_every_role_has_its_place(role: str, index: int, expected: RankEnv) -> None:
    assert tensorflow.read(tf_config(role, index)) == expected


def test_where_no_chief_is_named_worker_0_is_the_first() -> None:
    found = tensorflow.read(tf_config("worker", 0, {"worker": ["b:2", "c:2"]}))
    assert found is not None
    assert (found.rank, found.master_addr, found.master_port) == (0, "b", 2)


def test_azure_ml_s_number_of_an_instance_comes_before_the_order_of_hosts() -> None:
    environ = tf_config("worker", 0, {"worker": ["b:2"]}) | {"AZUREML_NODE_COUNT": "5", "AZUREML_CR_NODE_RANK": "4"}
    found = tensorflow.read(environ)
    assert found is not None
    assert (found.instance_rank, found.instance_count) == (4, 5)


@pytest.mark.parametrize("value", ["", " ", "{}", '{"cluster": {}}', '{"task": {"type": "worker", "index": 0}}'])
def test_without_a_cluster_there_is_nothing_to_read(value: str) -> None:
    assert tensorflow.read({"TF_CONFIG": value}) is None
