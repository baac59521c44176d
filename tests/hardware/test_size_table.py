"""The table of sizes: every row is whole, has its sources, and is found by its name."""

import re
from datetime import date

import pytest

from allranks.errors import InputError
from allranks.hardware.nccl import TOPOLOGY_FAMILIES
from allranks.hardware.sizes import Size, find, known, sizes

REPOSITORIES = ("azurehpc-health-checks@", "azhpc-images@", "azure-compute-docs ", "azure-docs ")


@pytest.mark.parametrize("size", sizes(), ids=lambda size: size.name)
def test_a_row(size: Size) -> None:
    assert re.fullmatch(r"Standard_N[CD]\w+", size.name)
    assert size.gpus in (1, 2, 4, 8)
    assert size.gpu_memory_gb > 0
    assert size.architecture in ("x86-64", "arm64")
    assert size.topology in ("", *TOPOLOGY_FAMILIES)
    # Each source names a repository and a file of it, at a commit or with its date.
    assert size.sources
    for source in size.sources:
        assert source.startswith(REPOSITORIES), source
        assert re.search(r"\w+@[0-9a-f]{7} \S+\.(conf|sh)$|\.md \(\d{4}-\d\d-\d\d\)$", source), source


@pytest.mark.parametrize("size", sizes(), ids=lambda size: size.name)
def test_infiniband_and_the_name_agree(size: Size) -> None:
    """ "r" in a name means RDMA, and NC24r is the one that has it and no InfiniBand."""
    features = re.match(r"Standard_N[CD]\d+([a-z]*)", size.name)
    assert features
    assert size.rdma == ("r" in features[1])
    assert size.infiniband == (size.rdma and size.name != "Standard_NC24r")
    if not size.infiniband:
        assert size.infiniband_ports == 0
        assert size.infiniband_gbit_s is None


def test_names_are_there_once() -> None:
    names = [size.name.lower() for size in sizes()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["Standard_ND96asr_v4", "standard_nd96asr_V4", "ND96asr_v4", " nd96ASR_v4\n"])
def test_a_name_in_every_form(name: str) -> None:
    size = find(name)
    assert (size.name, size.gpus, size.gpu, size.gpu_memory_gb) == ("Standard_ND96asr_v4", 8, "A100", 40)
    assert (size.infiniband_ports, size.infiniband_gbit_s, size.all_reduce_gb_s) == (8, 200, 228)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("ND96asr_A100_v4", "Standard_ND96amsr_A100_v4"),
        ("nd40", "Standard_ND40rs_v2"),
        ("Standard_NC24ad_A100_v4", "NC24ads"),
    ],
)
def test_a_name_that_is_nearly_right(name: str, near: str) -> None:
    with pytest.raises(InputError) as raised:
        find(name, where="step train")
    (problem,) = raised.value.problems
    assert problem.where == "step train"
    assert name in problem.found
    assert near in problem.expected


@pytest.mark.parametrize("name", ["", "Standard_", "??", "Standard_D2s_v3"])
def test_a_name_of_nothing(name: str) -> None:
    assert known(name) is None
    with pytest.raises(InputError, match="allranks doctor --sizes --retired"):
        find(name)


def test_what_no_source_says_is_none() -> None:
    assert find("NC24rs_v3").infiniband
    assert find("NC24rs_v3").infiniband_ports is None
    assert find("ND96is_H100_v5").host_memory_gib is None


def test_retirement_begins_on_its_day() -> None:
    size = find("NC24rs_v3")
    assert size.retired == date(2025, 9, 30)
    assert not size.is_retired(date(2025, 9, 29))
    assert size.is_retired(date(2025, 9, 30))
    assert not find("ND96asr_v4").is_retired(date(2099, 1, 1))
