"""The same script under every launch: the group comes up, collectives and DistributedDataParallel work."""

import socket
from collections.abc import Callable

import pytest

from allranks.contract import report
from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow
from free_ports import free_port

# Each starts trainings or imports the SDK in processes of its own: seconds apiece.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("distribution", "instance_count", "local_ranks", "instance_ranks"),
    [
        (PyTorch(2), 2, [0, 1, 0, 1], [0, 0, 1, 1]),
        (Mpi(2), 1, [0, 1], [0, 0]),
        (TensorFlow(), 2, [0, 0], [0, 1]),
    ],
    ids=["pytorch-2x2", "mpi-1x2", "tensorflow-2x1"],
)
def test_launch(
    start: Callable, distribution: Distribution, instance_count: int, local_ranks: list[int], instance_ranks: list[int]
) -> None:
    world = len(local_ranks)
    variables = {} if distribution.type == "pytorch" else {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ended = start("sum_ranks.py", distribution=distribution, instance_count=instance_count, variables=variables).wait()
    assert [rank.code for rank in ended] == [0] * world, ended
    mean = sum(range(world)) / world
    total = world * (world + 1) // 2
    assert [rank.stdout.split() for rank in ended] == [
        [
            *map(str, (rank, world, local_ranks[rank], instance_ranks[rank])),
            distribution.type,
            str(total),
            str(mean),
            "lo",
        ]
        for rank in range(world)
    ]


def test_single_on_two_instances_is_two_trainings(start: Callable) -> None:
    ended = start("sum_ranks.py", distribution=Single(), instance_count=2).wait()
    assert [rank.code for rank in ended] == [0, 0], ended
    assert [rank.stdout.split()[:2] for rank in ended] == [["0", "1"], ["0", "1"]]


def test_no_launcher(start: Callable) -> None:
    (ended,) = start("sum_ranks.py").wait()
    assert ended.code == 0, ended
    assert ended.stdout.split() == ["0", "1", "0", "0", "none", "1", "0.0", "lo"]


def test_one_process_needs_no_port(start: Callable) -> None:
    """Lightning#14118: the port is in use already, by another job's single process."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        variables = {"MASTER_PORT": str(other.getsockname()[1])}
        (ended,) = start("sum_ranks.py", distribution=PyTorch(1), variables=variables).wait()
    assert ended.code == 0, ended


def test_a_users_interface_wins(two: Callable) -> None:
    ended = two("sum_ranks.py", variables={"GLOO_SOCKET_IFNAME": "bogus0"})
    assert [rank.code for rank in ended] == [1, 1]
    # The first one takes the store with it, which the other one may still wait for.
    assert any("bogus0" in rank.stderr for rank in ended)


def test_ranks_that_never_come(start: Callable) -> None:
    """hi-ml#739: one process waits for a second that nobody starts."""
    variables = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    variables |= {"MASTER_PORT": str(free_port())}
    (ended,) = start("sum_ranks.py", 2, variables={**variables, "NODE_RANK": "0", "AZUREML_NODE_COUNT": "1"}).wait()
    assert ended.code == 1
    (failure,) = ended.of(report.Failure)
    assert failure.type == "ConnectionError"
    assert "rank 0 of 2" in failure.message
    assert "within 2 s" in failure.message


ALONE = {"AZUREML_NODE_COUNT": "2", "AZUREML_CR_NODE_RANK": "0", "ALLRANKS_PREFLIGHT": "0", "MASTER_ADDR": "127.0.0.1"}
OF_LAUNCHER = {
    "pytorch": {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "NODE_RANK": "0"},
    "mpi": {
        "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_COMM_WORLD_SIZE": "1",
        "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
    },
}


@pytest.mark.parametrize(
    ("launcher", "source"),
    [
        ("pytorch", "from allranks import runtime; runtime.main(print)"),
        ("mpi", "from allranks.runtime import prepare_libraries; prepare_libraries(); print()"),
    ],
    ids=["torch", "libraries"],
)
def test_a_rank_alone_of_a_job_of_two_instances(start: Callable, launcher: str, source: str) -> None:
    """The comparison does not depend on the preflight checks, which are off here."""
    (ended,) = start("sum_ranks.py", interpreter=["-c", source], variables=ALONE | OF_LAUNCHER[launcher]).wait()
    assert ended.code != 0, ended
    assert f"1 rank on 1 of the job's 2 instances (launcher {launcher})" in ended.stderr
    assert "2 ranks: 1 on each of the 2 instances" in ended.stderr
    assert "start ranks on all instances" in ended.stderr
    assert ("Traceback" in ended.stderr) is ("runtime.main" not in source)  # which prints errors of the input alone
    assert ended.stdout == ""


def test_no_address_to_meet_at(start: Callable) -> None:
    variables = OF_LAUNCHER["mpi"] | {"OMPI_COMM_WORLD_SIZE": "2"}
    (ended,) = start("sum_ranks.py", variables=variables).wait()
    assert ended.code == 2, ended
    assert "MASTER_ADDR" in ended.stderr
    assert "Traceback" not in ended.stderr
