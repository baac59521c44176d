"""What people got wrong, one test for each public issue about what a process is given or reads."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from allranks.contract import job, produce
from allranks.contract.detect import detect
from allranks.contract.job import Job
from allranks.contract.launch import Distribution, Launch
from allranks.contract.logs import log_of
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.rank_env import RankEnv
from allranks.contract.single import Single
from allranks.errors import InputError


def launched(distribution: Distribution, instance_count: int) -> Launch:
    numbers = range(instance_count)
    return Launch(distribution, tuple(f"10.0.0.{n + 4}" for n in numbers), tuple(f"node-{n}" for n in numbers))


def environments(distribution: Distribution, instance_count: int) -> list[dict[str, str]]:
    """What every process of a job is given, in the order of the ranks."""
    of = launched(distribution, instance_count)
    return [job.environment(Job("run", "run", "exp"), of, process) for process in produce.processes(of)]


def places(distribution: Distribution, instance_count: int, added: Mapping[str, str] | None = None) -> list[RankEnv]:
    return [detect({**environ, **(added or {})}) for environ in environments(distribution, instance_count)]


def test_lightning_13639_mpi_instances_are_told_apart_though_node_rank_is_0_on_each() -> None:
    # Local rank 0 of both instances has OMPI_COMM_WORLD_NODE_RANK 0; with one process an instance, every process has.
    assert {environ["OMPI_COMM_WORLD_NODE_RANK"] for environ in environments(Mpi(1), 2)} == {"0"}
    assert [place.instance_rank for place in places(Mpi(1), 2)] == [0, 1]
    assert [place.instance_rank for place in places(Mpi(2), 2, {"NODE_RANK": "0"})] == [0, 0, 1, 1]


def test_azure_docs_95788_node_rank_copied_from_the_mpi_rank_is_not_believed() -> None:
    found = [detect({**environ, "NODE_RANK": environ["OMPI_COMM_WORLD_RANK"]}) for environ in environments(Mpi(2), 2)]
    assert [(place.instance_rank, place.instance_count) for place in found] == [(0, 2), (0, 2), (1, 2), (1, 2)]


def test_lightning_14118_a_single_mpi_instance_has_no_az_batch_master_node_and_may_move_its_port() -> None:
    assert all("AZ_BATCH_MASTER_NODE" not in environ for environ in environments(Mpi(2), 1))
    assert {(place.master_addr, place.master_port) for place in places(Mpi(2), 1)} == {("10.0.0.4", 6105)}
    assert {place.master_port for place in places(Mpi(2), 1, {"MASTER_PORT": "54965"})} == {54965}


def test_lightning_14118_the_port_that_batch_keeps_for_itself_is_not_used() -> None:
    assert {environ["AZ_BATCH_MASTER_NODE"] for environ in environments(Mpi(1), 2)} == {"10.0.0.4:6000"}
    assert {place.master_port for place in places(Mpi(1), 2)} == {6105}


def test_azure_sdk_for_python_20285_several_instances_have_no_az_batchai_mpi_master_node() -> None:
    assert all("AZ_BATCHAI_MPI_MASTER_NODE" not in environ for environ in environments(Mpi(1), 2))
    assert {place.master_addr for place in places(Mpi(1), 2)} == {"10.0.0.4"}


def test_hi_ml_588_az_batchai_mpi_master_node_does_not_mean_a_single_instance() -> None:
    found = places(Mpi(2), 2, {"AZ_BATCHAI_MPI_MASTER_NODE": "localhost"})
    assert {place.master_addr for place in found} == {"10.0.0.4"}
    without_batch = dict(environments(Mpi(2), 2)[3], AZ_BATCHAI_MPI_MASTER_NODE="localhost", AZ_BATCH_MASTER_NODE="")
    assert detect(without_batch).master_addr is None


def test_hi_ml_739_one_process_under_pytorch_launch_waits_for_nobody() -> None:
    (place,) = places(PyTorch(), 1)
    assert (place.rank, place.world_size, place.local_world_size) == (0, 1, 1)


def test_lightning_13907_a_local_rank_of_another_launcher_does_not_mix_with_mpi_s() -> None:
    found = places(Mpi(2), 2, {"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "1"})
    assert [(place.rank, place.local_rank) for place in found] == [(0, 0), (1, 1), (2, 0), (3, 1)]


@pytest.mark.parametrize("instance_count", [1, 2])
def test_deepspeed_759_an_mpi_job_has_all_that_deepspeed_s_azure_ml_path_reads(instance_count: int) -> None:
    master = "AZ_BATCH_MASTER_NODE" if instance_count > 1 else "AZ_BATCHAI_MPI_MASTER_NODE"
    placed = {f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK")}
    for environ in environments(Mpi(2), instance_count):
        assert environ.keys() >= placed | {master, "AZUREML_EXPERIMENT_ID", "NCCL_SOCKET_IFNAME"}


@pytest.mark.parametrize(
    ("issue", "process_count", "instance_count", "world_size"),
    [
        ("azure-docs#111307", 4, 2, 8),
        ("MLOps#75", 4, 4, 16),
    ],
)
def test_process_count_per_instance_is_of_an_instance_not_of_the_job(
    issue: str, process_count: int, instance_count: int, world_size: int
) -> None:
    for distribution in (PyTorch(process_count), Mpi(process_count)):
        found = places(distribution, instance_count)
        assert len(found) == world_size, issue
        assert {(place.world_size, place.local_world_size) for place in found} == {(world_size, process_count)}, issue


@pytest.mark.parametrize("distribution", [PyTorch(), Mpi()], ids=str)
def test_azure_docs_93998_left_out_process_count_per_instance_is_one(distribution: Distribution) -> None:
    assert [(place.rank, place.local_world_size) for place in places(distribution, 1)] == [(0, 1)]


@pytest.mark.parametrize("distribution", [PyTorch(2), Mpi(2)], ids=str)
def test_azureml_examples_675_no_two_ranks_of_an_instance_share_a_local_rank(distribution: Distribution) -> None:
    found = places(distribution, 2)
    assert len({(place.instance_rank, place.local_rank) for place in found}) == 4


def test_azureml_examples_675_ranks_without_a_local_rank_are_refused() -> None:
    environ = environments(PyTorch(2), 2)[1]
    del environ["LOCAL_RANK"]
    with pytest.raises(InputError, match="LOCAL_RANK: is not set"):
        detect(environ)


@pytest.mark.parametrize("distribution", [PyTorch(1), PyTorch(2), Mpi(2), Single()], ids=str)
def test_azureml_assets_1324_no_two_processes_write_the_same_log(distribution: Distribution) -> None:
    of = launched(distribution, 2)
    logs = [log_of(of, process) for process in produce.processes(of)]
    names = [environ["AZUREML_PROCESS_NAME"] for environ in environments(distribution, 2)]
    assert len(set(logs)) == len(set(names)) == len(logs)
