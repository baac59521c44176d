import re
from pathlib import Path

import pytest

from allranks.contract.launch import Distribution, Launch
from allranks.contract.logs import log_name, log_of, numbers_of
from allranks.contract.mpi import Mpi
from allranks.contract.produce import processes
from allranks.contract.pytorch import PyTorch
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow


@pytest.mark.parametrize(
    ("world_size", "rank", "attempt", "expected"),
    [
        (1, 0, 0, "user_logs/std_log.txt"),
        (1, 0, 2, "user_logs/retry_002/std_log.txt"),
        (4, 3, 0, "user_logs/std_log_process_3.txt"),
        (10, 9, 0, "user_logs/std_log_process_9.txt"),
        (11, 3, 0, "user_logs/std_log_process_03.txt"),
        (11, 10, 0, "user_logs/std_log_process_10.txt"),
        (16, 3, 1, "user_logs/retry_001/std_log_process_03.txt"),
        (128, 7, 0, "user_logs/std_log_process_007.txt"),
    ],
)
def test_the_log_of_a_rank_names_its_attempt_and_its_rank(
    world_size: int, rank: int, attempt: int, expected: str
) -> None:
    assert log_name(world_size, rank, attempt) == expected
    assert numbers_of(Path(expected)) == (attempt, rank)


@pytest.mark.parametrize(
    ("distribution", "instance_count", "expected"),
    [
        (Single(), 1, ["std_log.txt"]),
        (Single(), 2, ["std_log_process_0.txt", "std_log_process_1.txt"]),
        (PyTorch(), 1, ["std_log_process_0.txt"]),
        (Mpi(2), 1, ["std_log_process_0.txt", "std_log_process_1.txt"]),
        (TensorFlow(2, 1), 2, ["std_log_node_0_worker.txt", "std_log_node_1_worker.txt", "std_log_node_0_ps.txt"]),
    ],
    ids=str,
)
def test_the_logs_of_a_launch(distribution: Distribution, instance_count: int, expected: list[str]) -> None:
    names = tuple(f"n{number}" for number in range(instance_count))
    of = Launch(distribution, names, names)
    assert [log_of(of, process) for process in processes(of)] == [f"user_logs/{name}" for name in expected]
    assert log_of(of, processes(of)[0], 1) == f"user_logs/retry_001/{expected[0]}"


@pytest.mark.parametrize("world_size", [1, 4, 10, 11, 100, 101])
def test_azure_ai_ml_streams_the_first_rank_s_log_and_no_other(world_size: int) -> None:
    streamed = re.compile(r"user_logs/std_log[\D]*[0]*(?:_ps)?\.txt")
    names = [log_name(world_size, rank) for rank in range(world_size)]
    assert [name for name in names if streamed.fullmatch(name)] == names[:1]
    assert sorted(names) == names
