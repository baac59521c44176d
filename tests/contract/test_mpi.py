from collections.abc import Mapping

import pytest

from allranks.contract import mpi
from allranks.contract.rank_env import RankEnv

# As MPICH 5.0 and Intel MPI 2021.18 set them.
HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
ALONE = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}


@pytest.mark.parametrize(
    ("master", "address", "port"),
    [
        ({}, None, 6105),
        ({"AZ_BATCH_MASTER_NODE": "10.0.0.4:6000"}, "10.0.0.4", 6105),
        ({"AZ_BATCHAI_MPI_MASTER_NODE": "10.0.0.4"}, "10.0.0.4", 6105),
        ({"MASTER_IP": "10.0.0.4"}, "10.0.0.4", 6105),
        ({"MASTER_ADDR": "10.0.0.4", "MASTER_PORT": "7000"}, "10.0.0.4", 7000),
        ({"MASTER_ADDR": "mine", "AZ_BATCH_MASTER_NODE": "10.0.0.4:6000", "MASTER_IP": "other"}, "mine", 6105),
    ],
)
def test_intel_mpi_and_mpich_are_read(master: Mapping[str, str], address: str | None, port: int) -> None:
    assert mpi.read({**HYDRA, **master}) == RankEnv(3, 1, 4, 2, 1, 2, address, port, "mpi")


@pytest.mark.parametrize(
    ("master", "address"), [({}, "127.0.0.1"), ({"AZ_BATCHAI_MPI_MASTER_NODE": "localhost"}, "localhost")]
)
def test_ranks_of_a_single_instance_always_have_a_master(master: Mapping[str, str], address: str) -> None:
    assert mpi.read({**ALONE, **master}) == RankEnv(1, 1, 2, 2, 0, 1, address, 6105, "mpi")


def test_what_mpirun_did_not_start_is_not_read() -> None:
    assert mpi.read({}) is None
