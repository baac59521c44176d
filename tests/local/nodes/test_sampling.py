"""The values that trials get: every distribution, each algorithm, no combination twice, the same ones again."""

import math
from itertools import product
from statistics import fmean, median

import pytest

from allranks.local.nodes.trial_sampling import Sampler, Units
from allranks.plan.graph import Step, Sweep
from allranks.plan.ports import Literal
from allranks.plan.sweep import Parameter, Sampling

LR = Parameter("lr", "uniform", (0.0, 1.0))
SIZE = Parameter("size", "choice", (), tuple(map(Literal, (8, 16, 32))))
KIND = Parameter("kind", "choice", (), tuple(map(Literal, ("a", "b"))))


def sweep(*space: Parameter, maximize: bool = False, **sampling: object) -> Sweep:
    return Sweep("tune", Step("tune", ""), space, "loss", maximize, Sampling(**sampling))  # type: ignore[arg-type]


def values(node: Sweep, number: int = 20) -> list[dict[str, str | int | float | bool]]:
    sampler = Sampler(node)
    sampled = (sampler.sample(trial) for trial in range(number))
    return [sampler.values(units) for units in sampled if units is not None]


SHAPES = {
    # distribution: (numbers, whether a value is possible, median)
    "randint": ((5.0,), lambda value: value in range(5), 2),
    "uniform": ((2.0, 4.0), lambda value: 2 <= value <= 4, 3),
    "loguniform": ((-4.0, 0.0), lambda value: math.exp(-4) <= value <= 1, math.exp(-2)),
    "quniform": ((0.0, 100.0, 5.0), lambda value: value in range(0, 101, 5), 50),
    "qloguniform": ((0.0, 4.0, 0.5), lambda value: 1 <= value <= 55 and (2 * value).is_integer(), 7.5),
    "normal": ((10.0, 2.0), math.isfinite, 10),
    "lognormal": ((0.0, 1.0), lambda value: value > 0, 1),
    "qnormal": ((0.0, 3.0, 1.0), lambda value: type(value) is int, 0),
    "qlognormal": ((2.0, 0.5, 0.1), lambda value: round(value, 1) == value, math.exp(2)),
}


@pytest.mark.parametrize("distribution", SHAPES)
def test_every_distribution(distribution: str) -> None:
    numbers, is_possible, middle = SHAPES[distribution]
    # A parameter without an end keeps the combinations distinct.
    found = [each["x"] for each in values(sweep(Parameter("x", distribution, numbers), LR), 400)]
    assert all(map(is_possible, found))
    spread = fmean(abs(value - middle) for value in found)
    assert median(found) == pytest.approx(middle, abs=max(0.35 * spread, 0.5))


def test_the_base_of_logarithmic_distributions() -> None:
    found = values(sweep(Parameter("lr", "loguniform", (-3.0, -1.0)), base=10.0), 50)
    assert all(0.001 <= each["lr"] <= 0.1 for each in found)  # type: ignore[operator]


def test_a_grid_has_each_combination_once() -> None:
    found = [tuple(each.values()) for each in values(sweep(SIZE, KIND, algorithm="grid"))]
    assert found == list(product((8, 16, 32), "ab"))


@pytest.mark.parametrize("sampling", [{}, {"rule": "sobol"}, {"algorithm": "bayesian"}], ids=str)
def test_no_combination_is_sampled_twice_and_the_same_seed_gives_the_same(sampling: dict[str, object]) -> None:
    discrete = [tuple(each.values()) for each in values(sweep(SIZE, KIND, **sampling))]
    assert sorted(discrete) == sorted(product((8, 16, 32), "ab"))
    first, again, other = (values(sweep(LR, KIND, seed=seed, **sampling), 8) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_sobol_points_are_spread_evenly() -> None:
    found = sorted(each["lr"] for each in values(sweep(LR, rule="sobol", seed=3), 16))
    assert [int(16 * value) for value in found] == list(range(16))  # type: ignore[operator]


@pytest.mark.parametrize("maximize", [False, True])
def test_bayesian_sampling_learns_from_results_also_those_before_a_resume(maximize: bool) -> None:
    node = sweep(LR, KIND, maximize=maximize, algorithm="bayesian", seed=5)
    sign = -1 if maximize else 1

    def lr(sampler: Sampler, units: Units) -> float:
        return float(sampler.values(units)["lr"])

    def search(sampler: Sampler, trials: range) -> dict[int, Units]:
        sampled = {}
        for trial in trials:
            units = sampled[trial] = sampler.sample(trial) or ()
            sampler.add_result(trial, sign * abs(lr(sampler, units) - 0.3))
        return sampled

    first = Sampler(node)
    earlier = search(first, range(20))
    resumed = Sampler(node)
    for trial, units in earlier.items():
        resumed.add(trial, units)
        resumed.add_result(trial, sign * abs(lr(first, units) - 0.3) if trial else None)  # the first one failed
    for sampler in (first, resumed):
        later = search(sampler, range(20, 40))
        assert median(abs(lr(sampler, units) - 0.3) for units in later.values()) < 0.1
