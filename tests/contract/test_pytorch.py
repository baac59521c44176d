from collections.abc import Mapping

import pytest

from allranks.contract import pytorch
from allranks.contract.rank_env import RankEnv


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"RANK": "0", "WORLD_SIZE": "1"}, RankEnv(0, 0, 1, 1, 0, 1, "127.0.0.1", 6105, "pytorch")),
        (
            {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"},
            RankEnv(1, 1, 2, 2, 0, 1, "localhost", 29500, "pytorch"),
        ),
        (
            {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "NODE_RANK": "1", "MASTER_ADDR": "a"},
            RankEnv(3, 1, 4, 2, 1, 2, "a", 6105, "pytorch"),
        ),
        # Every other rank on the second instance: all is said, so nothing is derived.
        (
            {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "NODE_RANK": "1", "LOCAL_WORLD_SIZE": "2"},
            RankEnv(3, 1, 4, 2, 1, 2, None, 6105, "pytorch"),
        ),
        (
            {"RANK": "1", "LOCAL_RANK": "0", "WORLD_SIZE": "4", "NODE_RANK": "1", "LOCAL_WORLD_SIZE": "2"},
            RankEnv(1, 0, 4, 2, 1, 2, None, 6105, "pytorch"),
        ),
        # A process of its own, in a job of two instances without a distribution.
        (
            {"RANK": "0", "WORLD_SIZE": "1", "AZUREML_NODE_COUNT": "2", "AZUREML_CR_NODE_RANK": "1"},
            RankEnv(0, 0, 1, 1, 0, 1, "127.0.0.1", 6105, "pytorch"),
        ),
        ({"MASTER_ADDR": "10.0.0.4", "LOCAL_RANK": "1"}, None),
    ],
)
def test_plain_variables(environ: Mapping[str, str], expected: RankEnv | None) -> None:
    assert pytorch.read(environ) == expected
