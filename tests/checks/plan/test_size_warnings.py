"""What the size that a step names is warned of, with the step and the key."""

from datetime import date

import pytest

from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow
from allranks.errors import Location
from allranks.plan.graph import Graph, Plan, Step
from plan_findings import check, warnings

TODAY = date(2026, 11, 1)


def found(size: str, **given: object) -> list[str]:
    step = Step("train", "x", instance_type=size, location=Location("p.py", 7), **given)  # type: ignore[arg-type]
    plan = Plan("p", Graph((step,)))
    assert check(plan) == []
    return [f"{warning.where}: {warning.found}" for warning in warnings(plan, TODAY)]


def test_a_step_without_a_size() -> None:
    assert found("", distribution=PyTorch(3)) == []


@pytest.mark.parametrize("size", ["Standard_D2s_v3", "a-kubernetes-type"])
def test_a_size_that_the_table_lacks(size: str) -> None:
    assert found(size, distribution=PyTorch(3)) == []


def test_the_place_is_named() -> None:
    (warning,) = found("Standard_ND96asr_v4", distribution=PyTorch(4), instance_count=2)
    assert warning.startswith("step train, key distribution.process_count_per_instance (p.py:7): 4 processes")


@pytest.mark.parametrize("distribution", [PyTorch(8), Mpi(8), Single(), TensorFlow(1), Ray()])
def test_a_size_that_fits(distribution: object) -> None:
    """What starts its processes itself knows how many it wants."""
    assert found("ND96asr_v4", distribution=distribution) == []


def test_infiniband_is_asked_for_by_a_variable() -> None:
    (warning,) = found("NC24ads_A100_v4", environment_variables={"NCCL_IB_HCA": "mlx5"})
    assert "key resources.instance_type" in warning
    assert "asks for InfiniBand" in warning


def test_each_of_several_sizes() -> None:
    warned = found("Standard_NC24r or Standard_ND96asr_v4", distribution=Mpi(8))
    assert sum("NC24r" in warning for warning in warned) == len(warned) == 3  # retired, no SR-IOV, 8 on 4 GPUs


def test_shared_memory() -> None:
    (warning,) = found("ND96asr_v4", distribution=PyTorch(8), shm_size=512 << 20)
    assert "key resources.shm_size" in warning
    assert "512 MiB for 8 ranks" in warning
