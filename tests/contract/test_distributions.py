import importlib
import pkgutil

import pytest

import allranks.contract
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow


def test_the_table_has_every_distribution_under_its_own_name() -> None:
    assert {
        settings.type: settings
        for module in pkgutil.iter_modules(allranks.contract.__path__, "allranks.contract.")
        for settings in vars(importlib.import_module(module.name)).values()
        if isinstance(settings, type) and issubclass(settings, Distribution) and settings is not Distribution
    } == DISTRIBUTIONS


@pytest.mark.parametrize(
    ("distribution", "instance_count"),
    [
        (PyTorch(8), 1),
        (Mpi(1), 100),
        (TensorFlow(), 3),
        (TensorFlow(2, 3), 3),
        (Ray(port=1, dashboard_port=65535), 2),
        (Single(), 2),
    ],
    ids=str,
)
def test_what_can_work_has_no_problem(distribution: Distribution, instance_count: int) -> None:
    assert distribution.problems(instance_count) == ()


@pytest.mark.parametrize(
    ("distribution", "instance_count", "keys"),
    [
        (PyTorch(0), 1, ["distribution.process_count_per_instance"]),
        (PyTorch(-1), 0, ["resources.instance_count", "distribution.process_count_per_instance"]),
        (Mpi(0), 1, ["distribution.process_count_per_instance"]),
        (TensorFlow(5), 2, ["distribution.worker_count"]),
        (TensorFlow(0), 2, ["distribution.worker_count"]),
        (TensorFlow(1, 3), 2, ["distribution.parameter_server_count"]),
        (TensorFlow(1, -1), 2, ["distribution.parameter_server_count"]),
        (Ray(port=0, dashboard_port=70000), 1, ["distribution.port", "distribution.dashboard_port"]),
        (Ray(), 0, ["resources.instance_count"]),
        (Single(), 0, ["resources.instance_count"]),
    ],
    ids=str,
)
def test_what_cannot_work_is_named_by_its_key(distribution: Distribution, instance_count: int, keys: list[str]) -> None:
    found = distribution.problems(instance_count)
    assert [problem.where for problem in found] == keys
    assert all(problem.found and problem.expected and problem.fix for problem in found)


def test_more_workers_than_instances_says_both_ways_out() -> None:
    (problem,) = TensorFlow(5).problems(2)
    assert problem.found == "5 on 2 instances"
    assert problem.fix == "set resources.instance_count to 5, or distribution.worker_count to 2"
