"""What a job was declared with, compared with what came up."""

from __future__ import annotations

import pytest

from allranks.contract import world
from allranks.contract.own_variables import DEFAULT_JOIN_SECONDS, JOIN_SECONDS, join_seconds
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError

HALF = RankEnv(world_size=2, local_world_size=2, launcher="mpi")


def test_a_world_that_is_smaller_than_declared_is_refused() -> None:
    with pytest.raises(InputError, match="2 ranks on 1 of the job's 3 instances") as raised:
        world.check(HALF, {"AZUREML_NODE_COUNT": "3"})
    assert "6 ranks: 2 on each of the 3 instances" in str(raised.value)


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
