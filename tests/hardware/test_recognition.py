"""The size and the family of an instance, from what it lists in /sys alone."""

from pathlib import Path

import pytest

import fake_instance
from allranks.hardware import nccl
from allranks.hardware.recognition import GPU_IDS, recognise
from allranks.hardware.sizes import find, sizes

HERE = Path(__file__).parent
INSTANCES = {file.stem: file.read_text() for file in sorted((HERE / "instances").glob("*.txt"))}

RECOGNISED = {
    "NC24ads_A100_v4": (["NC24ads_A100_v4"], ""),
    "NC24r": (["NC24r"], ""),
    "NC24rs_v3": (["NC24rs_v3"], ""),
    "NC80adis_H100_v5": (["NC80adis_H100_v5"], ""),
    "NC8as_T4_v3": (["NC8as_T4_v3"], ""),
    "NC96ads_A100_v4": (["NC96ads_A100_v4"], "ncv4"),
    # Nothing in /sys distinguishes these two, nor the two H200.
    "ND128isr_GB300_v6": (["ND128isr_GB300_v6", "ND128isrG5_GB300_v6"], ""),
    "ND128isr_NDR_GB200_v6": (["ND128isr_NDR_GB200_v6"], ""),
    "ND40rs_v2": (["ND40rs_v2"], "ndv2"),
    "ND96amsr_A100_v4": (["ND96amsr_A100_v4"], "ndv4"),
    "ND96asr_v4": (["ND96asr_v4"], "ndv4"),
    "ND96isr_H100_v5": (["ND96isr_H100_v5"], "ndv5"),
    "ND96isr_H200_v5": (["ND96isr_H200_v5", "ND96isrf_H200_v5"], "ndv5"),
    "ND96isr_MI300X_v5": (["ND96isr_MI300X_v5"], ""),
}


def test_there_is_an_instance_of_every_family() -> None:
    assert set(INSTANCES) == set(RECOGNISED)
    assert {family for _, family in RECOGNISED.values()} == {"", *nccl.TOPOLOGY_FAMILIES}
    assert {model for model, _ in GPU_IDS.values()} == {size.gpu for size in sizes()}
    assert {find(name).gpu for name in INSTANCES} == {size.gpu for size in sizes()}
    assert {file.stem for file in (HERE / "golden").glob("*.conf")} == set(INSTANCES)


@pytest.mark.parametrize("name", RECOGNISED)
def test_a_size(tmp_path: Path, name: str) -> None:
    fake_instance.add_instance(tmp_path, INSTANCES[name])
    recognised = recognise(tmp_path)
    names, family = RECOGNISED[name]
    assert [size.name for size in recognised.sizes] == [f"Standard_{one}" for one in names]
    assert recognised.family == family
    assert recognised.size is (recognised.sizes[0] if len(names) == 1 else None)


def test_a_port_that_is_down_still_counts(tmp_path: Path) -> None:
    text = INSTANCES["ND96asr_v4"].replace("infiniband mlx5_ib3", "down mlx5_ib3")
    fake_instance.add_instance(tmp_path, text)
    assert recognise(tmp_path).family == "ndv4"


def test_an_nvswitch_is_no_gpu(tmp_path: Path) -> None:
    fake_instance.add_instance(tmp_path, INSTANCES["NC24ads_A100_v4"] + "pci 0009:00:00.0 10de:20b5 068000 0\n")
    assert recognise(tmp_path).size is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "numa 1\ncpus 4\n",
        "pci 0000:01:00.0 10de:2684 030000 0\n",  # a GPU of a workstation
        "pci 0000:01:00.0 10de:20b2 030200 0\npci 0000:02:00.0 10de:2330 030200 0\n",
        "".join(f"pci 000{number}:00:00.0 10de:20b2 030200 0\n" for number in range(3)),
        "".join(
            f"pci 000{number}:00:00.0 10de:20b0 030200 0\n" for number in range(8)
        ),  # no size is without InfiniBand
    ],
    ids=["nothing", "no GPU", "another GPU", "two models", "three GPUs", "no InfiniBand"],
)
def test_hardware_of_no_size(tmp_path: Path, text: str) -> None:
    fake_instance.add_instance(tmp_path, text)
    recognised = recognise(tmp_path)
    assert (recognised.sizes, recognised.size, recognised.family) == ((), None, "")
