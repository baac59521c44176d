"""Every trap of the sizes, and that a size without one is not warned of."""

from collections.abc import Iterable
from datetime import date

import pytest

from allranks.errors import Problem
from allranks.hardware import traps
from allranks.hardware.network import Device
from allranks.hardware.sizes import find, sizes

TODAY = date(2026, 11, 1)
EIGHT = tuple(Device(f"mlx5_ib{number}") for number in range(8))


def only(problems: Iterable[Problem], *words: str) -> Problem:
    """The one warning that has these words in it."""
    (found,) = (problem for problem in problems if all(word in str(problem) for word in words))
    return found


def test_rdma_in_the_name_and_no_infiniband() -> None:
    warning = only(traps.of_size(find("NC24r"), date(2020, 1, 1)), "no SR-IOV")
    assert warning.where == "resources.instance_type"
    assert "no InfiniBand" in warning.found
    assert "allranks doctor --sizes --infiniband" in warning.fix


def test_it_is_the_only_size_of_that_kind() -> None:
    warned = [size.name for size in sizes() if any("SR-IOV" in str(one) for one in traps.of_size(size, TODAY))]
    assert warned == ["Standard_NC24r"]


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("NC96ads_A100_v4", "Standard_ND96asr_v4"),
        ("ND96is_H100_v5", "Standard_ND96isr_H100_v5"),
        ("NC24s_v3", "Standard_ND40rs_v2"),  # not NC24rs_v3, which is retired
        ("NC64as_T4_v3", "allranks doctor --sizes --infiniband"),
    ],
)
def test_infiniband_of_a_size_without_an_r(name: str, instead: str) -> None:
    size = find(name)
    warning = only(traps.of_size(size, TODAY, wants_infiniband=True), "asks for InfiniBand")
    assert size.name in warning.found
    assert instead in warning.fix
    assert not [one for one in traps.of_size(size, TODAY) if "InfiniBand" in str(one)]


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({"NCCL_IB_DISABLE": "0"}, True),
        ({"NCCL_IB_HCA": "mlx5"}, True),
        ({"NCCL_NET": "IB"}, True),
        ({"UCX_NET_DEVICES": "mlx5_ib0:1"}, True),
        ({"NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "", "UCX_NET_DEVICES": "eth0", "NCCL_NET": "Socket"}, False),
        ({}, False),
    ],
)
def test_what_asks_for_infiniband(variables: dict[str, str], asked: bool) -> None:
    assert traps.asks_for_infiniband(variables) == asked


@pytest.mark.parametrize("name", ["NC6s_v3", "NC24rs_v3", "NC24r"])
def test_a_retired_size(name: str) -> None:
    size = find(name)
    assert str(size.retired) in only(traps.of_size(size, TODAY), "is retired since").found
    assert str(size.retired) in only(traps.of_size(size, date(2023, 1, 1)), "will be retired on").found


def test_an_arm_cpu() -> None:
    for name in ("ND128isr_NDR_GB200_v6", "ND128isr_GB300_v6"):
        warning = only(traps.of_size(find(name), TODAY), "arm64")
        assert "4 GPUs" in warning.found
        assert "linux/arm64" in warning.expected


def test_amds_gpus() -> None:
    assert "NCCL" in only(traps.of_size(find("ND96isr_MI300X_v5"), TODAY), "AMD", "ROCm").found


@pytest.mark.parametrize("name", ["ND96asr_v4", "ND96isr_H100_v5", "NC24ads_A100_v4", "NC4as_T4_v3"])
def test_a_size_without_a_trap(name: str) -> None:
    size = find(name)
    assert not list(traps.of_size(size, TODAY))
    assert not list(traps.of_processes(size, size.gpus))


@pytest.mark.parametrize(
    ("name", "processes", "found", "fix"),
    [
        ("ND96asr_v4", 4, ["4 are idle"], "to 8"),
        ("NC48ads_A100_v4", 1, ["1 is idle"], "torchrun"),  # one process may start the others
        ("NC96ads_A100_v4", 8, ["8 processes on the 4 GPUs", "share", "NCCL refuses"], "to 4"),
        ("NC24ads_A100_v4", 2, ["2 processes on the 1 GPU"], "instance_count"),
    ],
)
def test_other_processes_than_gpus(name: str, processes: int, found: list[str], fix: str) -> None:
    (warning,) = traps.of_processes(find(name), processes)
    assert warning.where == "distribution.process_count_per_instance"
    assert all(words in warning.found for words in found)
    assert fix in warning.fix
    assert ("torchrun" in warning.fix) == (processes == 1)


def test_devices_that_are_there_down_and_missing() -> None:
    size = find("ND96asr_v4")
    assert not list(traps.of_devices(size, EIGHT))
    assert not list(traps.of_devices(find("NC24ads_A100_v4"), ()))
    (warning,) = traps.of_devices(size, (*EIGHT[:7], Device("mlx5_ib7", state="DOWN")))
    assert "7 InfiniBand devices" in warning.found
    assert "mlx5_ib7:1 is DOWN" in warning.found
    assert warning.expected.startswith("8,")
    (warning,) = traps.of_devices(size, (Device("mlx5_an0", link_layer="Ethernet"),))
    assert "0 InfiniBand devices" in warning.found
    assert "rdma-core" in warning.fix


def test_a_size_of_which_nobody_counted_the_devices() -> None:
    assert len(list(traps.of_devices(find("NC24rs_v3"), ()))) == 1
    assert not list(traps.of_devices(find("NC24rs_v3"), EIGHT[:1]))
