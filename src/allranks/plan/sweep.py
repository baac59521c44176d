"""The settings of a sweep: search space, sampling, and early termination."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from allranks.plan.ports import Literal

DISTRIBUTIONS = {
    "choice": (),
    "randint": ("upper",),
    "uniform": ("min_value", "max_value"),
    "loguniform": ("min_value", "max_value"),
    "quniform": ("min_value", "max_value", "q"),
    "qloguniform": ("min_value", "max_value", "q"),
    "normal": ("mu", "sigma"),
    "lognormal": ("mu", "sigma"),
    "qnormal": ("mu", "sigma", "q"),
    "qlognormal": ("mu", "sigma", "q"),
}
"""The numeric parameters of each distribution, by its name in azure-ai-ml. A choice has values instead."""

MOST_TRIALS = 1000
"""Maximum trials of a sweep on Azure ML."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a search space.

    distribution: a key of `DISTRIBUTIONS`
    numbers:      in the order of `DISTRIBUTIONS`; None for a missing one
    choices:      the values of a choice
    """

    name: str
    distribution: str
    numbers: tuple[float | None, ...] = ()
    choices: tuple[Literal, ...] = ()

    def __str__(self) -> str:
        """Return ``uniform(0, 1)``."""
        values = [str(each.value) for each in self.choices] or [
            f"{number:g}" for number in self.numbers if number is not None
        ]
        return f"{self.distribution}({', '.join(values)})"

    @property
    def size(self) -> float:
        """The number of values of a choice or a randint; infinity for any other distribution."""
        return len(self.choices) or ((self.numbers[0] or 0.0) if self.distribution == "randint" else math.inf)

    @property
    def type(self) -> str:
        """The type of an input that accepts every value of the parameter."""
        kinds = {type(choice.value) for choice in self.choices}
        if self.distribution == "randint" or kinds == {int}:
            return "integer"
        if kinds == {bool}:
            return "boolean"
        return "number" if kinds <= {int, float} else "string"


@dataclass(frozen=True)
class Sampling:
    """The sampling of a search space.

    algorithm: grid, random or bayesian
    rule:      of random sampling: random or sobol
    seed:      the same seed gives the same trials
    base:      of loguniform and the other logarithmic distributions
    """

    algorithm: str = "random"
    rule: str = "random"
    seed: int = 0
    base: float = math.e

    @property
    def module(self) -> str:
        """The module that samples; "" if none is needed."""
        algorithm = self.rule if self.algorithm == "random" else self.algorithm
        return {"bayesian": "optuna", "sobol": "scipy"}.get(algorithm, "")


@dataclass(frozen=True)
class EarlyTermination:
    """A policy that stops trials. An interval is one value of the primary metric that a trial logs.

    policy:       bandit, median_stopping or truncation_selection
    interval:     number of intervals between two applications
    delay:        number of intervals before the first application
    slack_factor: bandit: maximum ratio by which a trial may be worse than the best one
    slack_amount: bandit: maximum amount by which a trial may be worse than the best one
    percentage:   truncation_selection: percentage of trials to stop
    """

    policy: str
    interval: int = 1
    delay: int = 0
    slack_factor: float | None = None
    slack_amount: float | None = None
    percentage: int = 0


@dataclass(frozen=True)
class SweepLimits:
    """The limits of a sweep. concurrent: None for as many trials as the machine's slots allow. timeout: in seconds"""

    total: int = MOST_TRIALS
    concurrent: int | None = None
    timeout: float | None = None


def value_of(parameter: Parameter, unit: float, base: float = math.e) -> str | int | float | bool:
    """Return the quantile of a parameter's distribution, with six significant digits. unit: between 0 and 1"""
    kind, count = parameter.distribution, len(parameter.choices)
    if kind == "choice":
        return parameter.choices[min(int(unit * count), count - 1)].value
    first, *others = (number or 0.0 for number in parameter.numbers)
    if kind == "randint":
        return min(int(unit * first), int(first) - 1)
    if "uniform" in kind:
        value = first + unit * (others[0] - first)
    else:
        value = NormalDist(first, others[0]).inv_cdf(min(max(unit, 1e-9), 1 - 1e-9))  # 0 and 1 are infinite
    if "log" in kind:
        value = base**value
    if not kind.startswith("q"):
        return float(f"{value:.6g}")
    step = others[1]
    value = round(value / step) * step
    return int(value) if float(step).is_integer() else float(f"{value:.12g}")
