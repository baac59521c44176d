"""Which CUDA runs on which size, and where there is no bfloat16."""

from datetime import date

import pytest

from allranks.hardware import traps
from allranks.hardware.sizes import CAPABILITIES, find, has_bfloat16, releases_of, runs_on, sizes


def test_every_gpu_of_nvidia_has_its_compute_capability() -> None:
    assert {size.gpu for size in sizes() if not size.gpu.startswith("MI")} == set(CAPABILITIES)


@pytest.mark.parametrize(
    ("name", "variants", "bfloat16"),
    [
        ("NC24r", [], False),
        ("ND40rs_v2", ["cuda12"], False),
        ("NC4as_T4_v3", ["cuda12", "cuda13"], False),
        ("ND96asr_v4", ["cuda12", "cuda13"], True),
        ("ND96isr_H200_v5", ["cuda12", "cuda13"], True),
        ("ND128isr_NDR_GB200_v6", ["cuda13"], True),
        ("ND128isr_GB300_v6", ["cuda13"], True),
        ("ND96isr_MI300X_v5", [], True),
    ],
)
def test_what_a_size_takes(name: str, variants: list[str], bfloat16: bool) -> None:
    size = find(name)
    releases = releases_of(size)
    assert [release.name for release in releases] == variants
    assert has_bfloat16(size) is bfloat16
    for release in releases:
        assert runs_on(release.version, size)
        assert not list(traps.of_cuda(size, release.version))


@pytest.mark.parametrize(
    ("version", "name", "expected", "fix"),
    [
        ("13.0", "ND40rs_v2", "CUDA 12.6 (variant cuda12)", "environments/variant.sh cuda12"),
        ("13", "NC24rs_v3", "CUDA 12.6 (variant cuda12)", "environments/variant.sh cuda12"),
        ("12.6", "ND128isr_GB300_v6", "CUDA 13.0 (variant cuda13)", "environments/variant.sh cuda13"),
        ("12.6", "NC24r", "a newer GPU", "allranks doctor --sizes"),
    ],
)
def test_cuda_that_does_not_run(version: str, name: str, expected: str, fix: str) -> None:
    (problem,) = traps.of_cuda(find(name), version)
    assert f"CUDA {version}" in problem.found
    assert expected in problem.expected
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("version", "name"),
    [("", "ND40rs_v2"), ("12.9", "ND40rs_v2"), ("12.8", "ND128isr_GB300_v6"), ("13.0", "ND96isr_MI300X_v5")],
)
def test_cuda_that_may_run(version: str, name: str) -> None:
    assert not list(traps.of_cuda(find(name), version))


def test_infiniband_alone() -> None:
    day = date(2026, 11, 1)
    assert not list(traps.of_infiniband(find("NC96ads_A100_v4"), day, wanted=False))
    (problem,) = traps.of_infiniband(find("NC96ads_A100_v4"), day, wanted=True)
    assert "asks for InfiniBand" in problem.found
