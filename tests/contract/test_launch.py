import json
from collections.abc import Mapping

import pytest

from allranks.contract.launch import Distribution, Launch, Process
from allranks.contract.mpi import Mpi
from allranks.contract.produce import environment, processes
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow
from allranks.contract.variables import MASTER_PORT

ADDRESSES = ("10.0.0.4", "10.0.0.5")
HOSTNAMES = ("node-0", "node-1")


def launch(distribution: Distribution, instance_count: int = 2, master_port: int = MASTER_PORT) -> Launch:
    return Launch(distribution, ADDRESSES[:instance_count], HOSTNAMES[:instance_count], master_port)


PLACED = [
    (PyTorch(), 2, [Process(0, 0, 0), Process(1, 0, 1)]),
    (PyTorch(2), 2, [Process(0, 0, 0), Process(1, 1, 0), Process(2, 0, 1), Process(3, 1, 1)]),
    (Mpi(2), 1, [Process(0, 0, 0), Process(1, 1, 0)]),
    (TensorFlow(), 2, [Process(0, 0, 0), Process(1, 0, 1)]),
    (TensorFlow(1, 2), 2, [Process(0, 0, 0), Process(1, 1, 0, "ps"), Process(2, 0, 1, "ps")]),
    (Ray(), 2, [Process(0, 0, 0), Process(1, 0, 1)]),
    (Single(), 2, [Process(0, 0, 0), Process(1, 0, 1)]),
]


@pytest.mark.parametrize(("distribution", "instance_count", "expected"), PLACED, ids=str)
def test_what_the_platform_starts(distribution: Distribution, instance_count: int, expected: list[Process]) -> None:
    assert list(processes(launch(distribution, instance_count))) == expected


IN_SEVERAL = {
    "AZUREML_NODE_COUNT": "2",
    "AZUREML_CR_NODE_RANK": "1",
    "AZ_BATCHAI_TASK_INDEX": "1",
    "AZ_BATCH_MASTER_NODE": "10.0.0.4:6000",
    "AZ_BATCH_HOST_LIST": "10.0.0.4,10.0.0.5",
    "AZ_BATCH_NODE_LIST": "10.0.0.4;10.0.0.5",
    "AZ_BATCH_IS_CURRENT_NODE_MASTER": "false",
    "AZUREML_CR_DISTRIBUTED_CONFIG": '{"host_list": ["10.0.0.4", "10.0.0.5"]}',
}
ALONE = {"AZUREML_NODE_COUNT": "1", "AZUREML_CR_NODE_RANK": "0", "AZ_BATCHAI_TASK_INDEX": "0"}

# The last process of each launch, and everything that it is given but its instance's variables.
GIVEN = [
    (
        PyTorch(2),
        2,
        {
            "AZUREML_PROCESS_NAME": "rank_3",
            "MASTER_ADDR": "10.0.0.4",
            "MASTER_PORT": "6105",
            "WORLD_SIZE": "4",
            "NODE_RANK": "1",
            "RANK": "3",
            "LOCAL_RANK": "1",
        },
    ),
    (
        Mpi(2),
        2,
        {
            "AZUREML_PROCESS_NAME": "rank_3",
            "OMPI_COMM_WORLD_RANK": "3",
            "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            "OMPI_COMM_WORLD_NODE_RANK": "1",
            "OMPI_UNIVERSE_SIZE": "4",
        },
    ),
    (
        Mpi(),
        1,
        {
            "AZUREML_PROCESS_NAME": "rank_0",
            "AZ_BATCHAI_MPI_MASTER_NODE": "10.0.0.4",
            "OMPI_COMM_WORLD_RANK": "0",
            "OMPI_COMM_WORLD_SIZE": "1",
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "1",
            "OMPI_COMM_WORLD_NODE_RANK": "0",
            "OMPI_UNIVERSE_SIZE": "1",
        },
    ),
    (Ray(), 2, {"AZUREML_PROCESS_NAME": "rank_1", "RAY_ADDRESS": "10.0.0.4:6379"}),
    (Ray(port=7000), 1, {"AZUREML_PROCESS_NAME": "rank_0", "RAY_ADDRESS": "10.0.0.4:7000"}),
    (Ray(address="head:7001"), 1, {"AZUREML_PROCESS_NAME": "rank_0", "RAY_ADDRESS": "head:7001"}),
    (Single(), 1, {"AZUREML_PROCESS_NAME": "rank_0"}),
    (Single(), 2, {"AZUREML_PROCESS_NAME": "rank_1"}),
]


@pytest.mark.parametrize(("distribution", "instance_count", "expected"), GIVEN, ids=str)
def test_the_variables_of_a_process(
    distribution: Distribution, instance_count: int, expected: Mapping[str, str]
) -> None:
    started = launch(distribution, instance_count)
    instance = IN_SEVERAL if instance_count > 1 else ALONE
    assert environment(started, processes(started)[-1]) == {**instance, **expected}


@pytest.mark.parametrize(
    ("settings", "index", "cluster", "task"),
    [
        (TensorFlow(), 1, {"worker": ["10.0.0.4:2222", "10.0.0.5:2222"]}, {"type": "worker", "index": 1}),
        (
            TensorFlow(1, 1),
            1,
            {"worker": ["10.0.0.4:2222"], "ps": ["10.0.0.4:2223"]},
            {"type": "ps", "index": 0},
        ),
    ],
)
def test_tf_config(settings: TensorFlow, index: int, cluster: dict[str, list[str]], task: dict[str, object]) -> None:
    started = launch(settings)
    config = json.loads(environment(started, processes(started)[index])["TF_CONFIG"])
    assert config == {"cluster": cluster, "task": task, "environment": "cloud"}


def test_the_first_instance_is_batch_s_master() -> None:
    started = launch(PyTorch())
    first, second = (environment(started, process) for process in processes(started))
    assert first["AZ_BATCH_IS_CURRENT_NODE_MASTER"] == "true"
    assert second["AZ_BATCH_IS_CURRENT_NODE_MASTER"] == "false"


@pytest.mark.parametrize(
    ("distribution", "expected"), [(PyTorch(), "7000"), (Mpi(), "7000"), (Ray(), "7000"), (Single(), None)]
)
def test_a_port_of_one_s_own_is_told_to_every_rank(distribution: Distribution, expected: str | None) -> None:
    started = launch(distribution, master_port=7000)
    assert all(environment(started, process).get("MASTER_PORT") == expected for process in processes(started))


@pytest.mark.parametrize(("addresses", "hostnames"), [((), ()), (ADDRESSES, HOSTNAMES[:1])])
def test_a_launch_needs_instances_that_have_names(addresses: tuple[str, ...], hostnames: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"instance|hostnames"):
        Launch(PyTorch(), addresses, hostnames)


@pytest.mark.parametrize("distribution", [PyTorch(0), Mpi(0), TensorFlow(3), TensorFlow(1, 3)], ids=str)
def test_processes_of_an_impossible_layout_are_refused(distribution: Distribution) -> None:
    with pytest.raises(ValueError, match="count"):
        processes(launch(distribution))
