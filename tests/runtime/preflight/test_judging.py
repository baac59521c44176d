"""What the checks make of the facts of all ranks."""

from dataclasses import replace

import pytest
import torch

from allranks.contract import world
from allranks.contract.rank_env import RankEnv
from allranks.hardware import shared_memory as memory
from allranks.hardware.sizes import find
from allranks.runtime.preflight import facts as facts_of_a_rank
from allranks.runtime.preflight import judging
from allranks.runtime.preflight.checking import is_enabled
from allranks.runtime.preflight.facts import Facts
from allranks.runtime.preflight.findings import FAILED, OK, WARNING, Finding, table
from allranks.runtime.preflight.links import Link, Sum

FAST = 1e9


def ranks(instances: int = 2, processes: int = 2, **changes: object) -> list[Facts]:
    versions = {"Python": "3.11.7", "torch": "2.13.0"}
    facts = [
        Facts(
            rank,
            rank // processes,
            instances * processes,
            f"node-{rank // processes}",
            versions,
            None,
            False,
            (),
            2 << 30,
            (),
            False,
        )
        for rank in range(instances * processes)
    ]
    return [replace(fact, **changes) for fact in facts]  # type: ignore[arg-type]


def who(findings: list[Finding], state: str = FAILED) -> list[tuple[int | None, int | None]]:
    assert all(finding.state == state and finding.expected and finding.fix for finding in findings)
    return [(finding.instance, finding.rank) for finding in findings]


def test_all_alike() -> None:
    facts = ranks()
    checks = (judging.names, judging.shared_memory, judging.gpus, judging.versions)
    assert [list(check(facts)) for check in checks] == [[], [], [], []]


@pytest.mark.parametrize(
    ("offsets", "blamed"),
    [
        ([0.0, 0.01, -0.2], []),
        ([0.0, 90.0], [(1, 2)]),
        ([0.0, -90.0], [(1, 2)]),
        ([0.0, 90.0, 90.1], [(0, 0)]),
        ([0.0, 90.0, 0.0, -7.0], [(1, 2), (3, 6)]),
        ([0.0], []),
    ],
    ids=["agree", "ahead", "behind", "the first one itself", "two", "one instance"],
)
def test_clocks(offsets: list[float], blamed: list[tuple[int, int]]) -> None:
    """A training does not depend on them: a warning."""
    assert who(list(judging.clocks(ranks(instances=len(offsets)), offsets)), WARNING) == blamed


def test_a_rank_that_counts_others() -> None:
    facts = ranks()
    facts[2] = replace(facts[2], world_size=2)
    env = RankEnv(world_size=4, local_world_size=2, instance_count=2)
    (finding,) = judging.world_size(facts, env, 2, elastic=False)
    assert who([finding]) == [(1, 2)]
    assert (finding.found, finding.expected) == ("counts 2 ranks on node-1", "4, as on rank 0")


@pytest.mark.parametrize(
    ("variables", "state"),
    [
        ({"AZUREML_NODE_COUNT": "3"}, FAILED),
        ({"AZUREML_NODE_COUNT": "3", "TORCHELASTIC_MAX_RESTARTS": "0"}, FAILED),
        ({"AZUREML_NODE_COUNT": "3", "TORCHELASTIC_MAX_RESTARTS": "2"}, WARNING),
        ({"AZUREML_NODE_COUNT": "1"}, None),
        ({}, None),
    ],
)
def test_ranks_on_fewer_instances_than_declared(variables: dict[str, str], state: str | None) -> None:
    """As with Open MPI 5, which ignores the hosts that Azure ML passes."""
    env = RankEnv(world_size=1, launcher="mpi")
    assert is_enabled(env, variables) == (state is not None)
    assert not is_enabled(env, {**variables, "ALLRANKS_PREFLIGHT": "0"})
    found = judging.world_size(ranks(1, 1), env, world.instances(env, variables), elastic=world.elastic(variables))
    assert [finding.state for finding in found] == ([] if state is None else [state])


@pytest.mark.parametrize("launcher", ["none", "ray", "tensorflow"])
def test_some_launchers_leave_instances_without_ranks(launcher: str) -> None:
    assert world.instances(RankEnv(launcher=launcher), {"AZUREML_NODE_COUNT": "3"}) == 1


def test_gpus_are_counted_for_each_instance_alone() -> None:
    facts = [replace(fact, gpu=str(fact.rank % 2)) for fact in ranks()]
    assert list(judging.gpus(facts)) == []
    facts[3] = replace(facts[3], gpu="0")
    assert who(list(judging.gpus(facts))) == [(1, 3)]


def test_a_gpu_may_be_shared_where_that_was_asked_for() -> None:
    assert list(judging.gpus(ranks(gpu="0", gpu_shared=True))) == []


def test_one_rank_without_a_gpu_among_others() -> None:
    facts = [replace(fact, gpu=f"GPU-{fact.rank}") for fact in ranks()]
    assert who(list(judging.gpus([*facts[:3], replace(facts[3], gpu=None)]))) == [(1, 3)]


def test_the_few_are_blamed_for_a_version() -> None:
    facts = ranks(instances=3, processes=1)
    facts[0] = replace(facts[0], versions={**facts[0].versions, "torch": "2.9.0"})
    (finding,) = judging.versions(facts)
    assert who([finding], WARNING) == [(0, 0)]
    assert finding.expected == "torch 2.13.0, as on rank 1"


def test_a_library_that_one_instance_lacks() -> None:
    facts = ranks(instances=3, processes=1, versions={"torch": "2.13.0", "deepspeed": "0.19.8"})
    facts[2] = replace(facts[2], versions={"torch": "2.13.0"})
    (finding,) = judging.versions(facts)
    assert (finding.rank, finding.found) == (2, "deepspeed none on node-2")


@pytest.mark.parametrize(
    ("slow", "blamed"),
    [
        ([], []),
        ([(0, 1), (1, 2)], [(1, 2), (1, 2)]),
        ([(2, 3), (3, 0)], [(3, 6), (3, 6)]),
        ([(1, 2)], [(2, 4)]),
    ],
    ids=["none", "an instance", "the last one", "the link alone"],
)
def test_network(slow: list[tuple[int, int]], blamed: list[tuple[int, int]]) -> None:
    ring = [(one, (one + 1) % 4) for one in range(4)]
    links = [Link(*ends, there=1e6 if ends in slow else FAST, back=FAST) for ends in ring]
    assert who(list(judging.network(links, 2))) == blamed


def test_two_instances_have_one_link() -> None:
    (finding,) = judging.network([Link(0, 1, there=FAST, back=1e6)], 1)
    assert (finding.instance, finding.rank) == (1, 1)
    assert finding.found == "8.0 Mbit/s between instance 1 and instance 0"


def test_a_wrong_sum_is_a_failure_and_a_slow_one_a_warning() -> None:
    (wrong,) = judging.sums([Sum(True, 0.1), Sum(True, 0.1), Sum(False, 0.1)], local_world_size=2)
    assert (wrong.state, wrong.instance, wrong.rank) == (FAILED, 1, 2)
    (slow,) = judging.sums([Sum(True, 0.1), Sum(True, 60.0)], local_world_size=2)
    assert (slow.state, slow.instance, slow.rank) == (WARNING, 0, 1)


def test_the_table_has_a_line_a_check_and_says_more_of_what_is_wrong() -> None:
    findings = [
        Finding("clocks", OK, "within 1 ms"),
        Finding("versions", FAILED, "torch 2.9.0 on node-1", "torch 2.13.0", "use one environment", 1, 2),
    ]
    assert table("preflight: 4 ranks", findings).splitlines() == [
        "preflight: 4 ranks",
        "  clocks      ok       within 1 ms",
        "  versions    FAILED   instance 1, rank 2: torch 2.9.0 on node-1",
        "                       expected: torch 2.13.0",
        "                       fix: use one environment",
    ]


def test_the_facts_of_a_rank() -> None:
    environ = {"AZ_BATCH_HOST_LIST": "127.0.0.1,localhost,node-7.invalid", "CUDA_VISIBLE_DEVICES": "3"}
    facts = facts_of_a_rank.gather(RankEnv(rank=1, local_rank=1, world_size=2, local_world_size=2), environ)
    assert (facts.rank, facts.unresolved) == (1, ("node-7.invalid",))
    assert facts.gpu == "3" or torch.cuda.is_available()
    assert facts.shm_bytes == memory.found()
    assert facts.versions["torch"] == torch.__version__


NDV4 = find("ND96asr_v4")
TWO = [
    Facts(
        8 * number,
        number,
        16,
        f"node-{number}",
        {},
        "GPU-0",
        False,
        (),
        2 << 30,
        (200.0,) * 8,
        False,
        (NDV4.name,),
        "ndv4",
        "/opt/microsoft/ndv4-topo.xml",
        True,
    )
    for number in range(2)
]


def second(**changes: object) -> list[Facts]:
    """Two instances, of which the second is changed."""
    return [TWO[0], replace(TWO[1], **changes)]  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [NDV4, None])
def test_two_instances_as_they_should_be(size: object) -> None:
    assert list(judging.port_rates(TWO, size)) == []  # type: ignore[arg-type]
    assert list(judging.topology(TWO, size)) == []  # type: ignore[arg-type]
    assert judging.topology_text(TWO) == "Standard_ND96asr_v4, /opt/microsoft/ndv4-topo.xml"


@pytest.mark.parametrize(("size", "source"), [(NDV4, "as Standard_ND96asr_v4 has"), (None, "as the others have")])
def test_a_slow_port(size: object, source: str) -> None:
    instances = second(infiniband=(200.0,) * 6 + (100.0, 0.0))
    (finding,) = judging.port_rates(instances, size)  # type: ignore[arg-type]
    assert (finding.state, finding.instance, finding.rank) == (WARNING, 1, 8)
    assert finding.found == "1 of 8 InfiniBand ports on node-1 run at 100 Gbit/s"
    assert finding.expected == f"200 Gbit/s, {source}"


@pytest.mark.parametrize(
    ("changes", "found", "fix"),
    [
        (
            {"sizes": ("Standard_ND96isr_H100_v5",)},
            "node-1 has the hardware of Standard_ND96isr_H100_v5",
            "ALLRANKS_SIZE",
        ),
        ({"topology_file": ""}, "NCCL knows no PCI topology on node-1", "ndv4-topo.xml"),
        ({"topology_exists": False}, "NCCL_TOPO_FILE=/opt/microsoft/ndv4-topo.xml does not exist", "unset"),
    ],
)
def test_a_topology_that_is_wrong(changes: dict[str, object], found: str, fix: str) -> None:
    (finding,) = judging.topology(second(**changes), NDV4)
    assert (finding.state, finding.instance, finding.rank) == (WARNING, 1, 8)
    assert found in finding.found
    assert fix in finding.fix


def test_without_gpus_or_a_size_nothing_is_said() -> None:
    assert list(judging.topology(second(gpu=None, topology_file=""), None)) == []
    assert list(judging.topology(second(sizes=(), family="", topology_file=""), NDV4)) == []
    assert judging.topology_text([replace(TWO[0], gpu=None)]) == "no GPUs"
