from __future__ import annotations

from collections.abc import Mapping

import pytest

from allranks.contract.detect import detect, first_host, read_slurm, tasks_per_node
from allranks.contract.rank_env import RankEnv

STEP = {
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "2",
    "SLURM_NTASKS": "6",
    "SLURM_NNODES": "3",
    "SLURM_TASKS_PER_NODE": "2,3,1",
    "SLURM_JOB_NODELIST": "node[01-02,7]",
}


def test_a_task_of_a_step_has_a_place_on_uneven_nodes_too() -> None:
    assert read_slurm(STEP) == RankEnv(5, 0, 6, 1, 2, 3, "node01", 6105, "slurm")


def test_the_step_s_counts_come_before_the_job_s() -> None:
    step = {
        "SLURM_STEP_NUM_TASKS": "4",
        "SLURM_STEP_NUM_NODES": "2",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
        "SLURM_STEP_NODELIST": "node[02,7]",
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "1",
    }
    assert read_slurm({**STEP, **step}) == RankEnv(3, 1, 4, 2, 1, 2, "node02", 6105, "slurm")


def test_a_fixed_number_of_tasks_on_each_node() -> None:
    environ = {name: value for name, value in STEP.items() if name != "SLURM_TASKS_PER_NODE"}
    found = read_slurm({**environ, "SLURM_NTASKS_PER_NODE": "2"})
    assert found is not None
    assert found.local_world_size == 2


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"SLURM_STEP_ID": ""}, id="the body of a batch script"),
        pytest.param({"SLURM_STEP_ID": str(0xFFFFFFFB)}, id="the batch step"),
        pytest.param({"SLURM_STEP_ID": str(0xFFFFFFFA)}, id="the shell of salloc"),
        pytest.param({"SLURM_PROCID": ""}, id="no task"),
    ],
)
def test_what_srun_did_not_start_is_no_rank(changes: Mapping[str, str]) -> None:
    assert read_slurm({**STEP, **changes}) is None
    assert detect({**STEP, **changes}) == RankEnv()


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ({"SLURM_JOB_NODELIST": "", "SLURM_NODELIST": "other3"}, "other3"),
        ({"SLURM_JOB_NODELIST": "", "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.1"}, "10.0.0.1"),
        ({"MASTER_ADDR": "10.0.0.2"}, "10.0.0.2"),
        ({"SLURM_JOB_NODELIST": ""}, None),
    ],
)
def test_where_rank_0_is(hosts: Mapping[str, str], expected: str | None) -> None:
    found = read_slurm({**STEP, **hosts})
    assert found is not None
    assert found.master_addr == expected


@pytest.mark.parametrize(
    ("nodelist", "first"),
    [
        ("node7", "node7"),
        ("node7,other3", "node7"),
        ("node[01-04,7],other3", "node01"),
        ("node[7,01-04]", "node7"),
        ("other3,node[01-04]", "other3"),
        ("rack[1-2]node[3-4]", "rack1node3"),
        ("a-b-[08-11]-ib,c", "a-b-08-ib"),
    ],
)
def test_the_first_host_of_a_node_list(nodelist: str, first: str) -> None:
    assert first_host(nodelist) == first


@pytest.mark.parametrize(
    ("value", "counts"),
    [("4", (4,)), ("2(x3),1", (2, 2, 2, 1)), ("1, 2(x2)", (1, 2, 2)), ("2x3", None), ("", None), ("2(x)", None)],
)
def test_tasks_of_each_node(value: str, counts: tuple[int, ...] | None) -> None:
    assert tasks_per_node(value) == counts
