import pytest

from allranks.contract import ray
from allranks.contract.rank_env import RankEnv

PLACE = {"AZUREML_NODE_COUNT": "2", "AZUREML_CR_NODE_RANK": "1"}


@pytest.mark.parametrize(
    ("address", "master"),
    [
        ("10.0.0.4:6379", "10.0.0.4"),
        ("10.0.0.4", "10.0.0.4"),
        ("ray://10.0.0.4:10001", "10.0.0.4"),
        ("auto", "10.0.0.9"),
    ],
)
def test_the_rank_is_the_instance_s_and_ray_s_port_is_left_to_ray(address: str, master: str) -> None:
    environ = {**PLACE, "RAY_ADDRESS": address, "AZ_BATCH_MASTER_NODE": "10.0.0.9:6000"}
    assert ray.read(environ) == RankEnv(1, 0, 2, 1, 1, 2, master, 6105, "ray")


@pytest.mark.parametrize("environ", [{}, PLACE, {"RAY_ADDRESS": "10.0.0.4:6379"}])
def test_a_cluster_that_azure_ml_did_not_start_is_no_launch(environ: dict[str, str]) -> None:
    assert ray.read(environ) is None
