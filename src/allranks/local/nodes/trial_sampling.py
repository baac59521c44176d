"""Sample the search space of a sweep: the position of each trial's values in their distributions."""

import itertools
import math
import random
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from allranks.plan.graph import Sweep
from allranks.plan.sweep import value_of

Units: TypeAlias = tuple[float, ...]
"""A position between 0 and 1 for each parameter, see `value_of`."""

_DRAWS = 20_000
"""Number of draws without a new combination after which a search space counts as exhausted."""


class Sampler:
    """The sampler of one sweep, which samples no combination of values twice. A trial's units depend on the seed and
    the trial's number; with bayesian sampling also on the results that are known then.

    size: the number of combinations, which may be infinite
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self._sampled: set[tuple[object, ...]] = set()
        self.size = math.prod(parameter.size for parameter in sweep.search_space)
        self._study = _Study(sweep) if sweep.sampling.module == "optuna" else None
        self._sequence = _sobol(sweep) if sweep.sampling.module == "scipy" else ()

    def values(self, units: Units) -> dict[str, str | int | float | bool]:
        space, base = self._sweep.search_space, self._sweep.sampling.base
        return {each.name: value_of(each, unit, base) for each, unit in zip(space, units, strict=True)}

    def sample(self, number: int) -> Units | None:
        """Return the units of a new trial; None if every combination has been sampled."""
        left = _DRAWS if len(self._sampled) < self.size else 0
        for units in itertools.islice(self._candidates(number), left):
            values = tuple(self.values(units).values())
            if values not in self._sampled:
                return self.add(number, units)
        return None

    def add(self, number: int, units: Units) -> Units:
        """Add a trial, such as one from before the run was resumed, and return its units."""
        self._sampled.add(tuple(self.values(units).values()))
        if self._study is not None:
            self._study.add(number, units)
        return units

    def add_result(self, number: int, value: float | None) -> None:
        """Add the result of a trial; None if it has none."""
        if self._study is not None:
            self._study.add_result(number, value)

    def _candidates(self, number: int) -> Iterator[Units]:
        sampling, size = self._sweep.sampling, len(self._sweep.search_space)
        if sampling.algorithm == "grid":
            yield from self._grid(number)
            return
        if number < len(self._sequence):
            yield self._sequence[number]
        if self._study is not None:
            yield self._study.proposal()
        draws = random.Random(f"{sampling.seed}-{number}")
        while True:
            yield tuple(draws.random() for _ in range(size))

    def _grid(self, number: int) -> Iterator[Units]:
        sizes = [len(parameter.choices) for parameter in self._sweep.search_space]
        places = []
        for size in reversed(sizes):
            number, place = divmod(number, size)
            places.append((place + 0.5) / size)
        if not number:
            yield tuple(reversed(places))


def _sobol(sweep: Sweep) -> Sequence[Units]:
    """Return the points of a Sobol sequence for all trials."""
    from scipy.stats.qmc import Sobol  # 0.8 s

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # points are balanced only if their number is a power of 2
        points = Sobol(len(sweep.search_space), seed=sweep.sampling.seed).random(sweep.limits.total)
    return [tuple(point) for point in points.tolist()]


class _Study:
    """Optuna's study of a sweep. Its parameters are units, or the index of the value for a choice."""

    def __init__(self, sweep: Sweep) -> None:
        # 0.3 s, and only Bayesian sampling needs it.
        import optuna
        from optuna.distributions import CategoricalDistribution, FloatDistribution
        from optuna.samplers import TPESampler

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._sizes = [len(parameter.choices) for parameter in sweep.search_space]
        self._distributions: dict[str, Any] = {
            parameter.name: CategoricalDistribution(range(size)) if size else FloatDistribution(0.0, 1.0)
            for parameter, size in zip(sweep.search_space, self._sizes, strict=True)
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # Running trials count as bad ones, so that trials side by side differ.
            sampler = TPESampler(seed=sweep.sampling.seed, constant_liar=True)
        self._study = optuna.create_study(direction="maximize" if sweep.maximize else "minimize", sampler=sampler)
        self._numbers: dict[int, int] = {}
        self._optuna = optuna

    def proposal(self) -> Units:
        """Return the units that the study suggests from the results so far."""
        trial = self._study.ask(self._distributions)
        # It is added as a trial when its values are known to be new.
        self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        values = trial.params.values()
        return tuple((int(v) + 0.5) / size if size else float(v) for v, size in zip(values, self._sizes, strict=True))

    def add(self, number: int, units: Units) -> None:
        """Add a running trial."""
        pairs = zip(self._distributions, units, self._sizes, strict=True)
        params = {name: int(unit * size) if size else unit for name, unit, size in pairs}
        running = self._optuna.trial.TrialState.RUNNING
        self._numbers[number] = len(self._study.get_trials(deepcopy=False))
        self._study.add_trial(
            self._optuna.trial.create_trial(state=running, params=params, distributions=self._distributions)
        )

    def add_result(self, number: int, value: float | None) -> None:
        """Add the result of a trial; None if it has none."""
        states = self._optuna.trial.TrialState
        self._study.tell(self._numbers[number], value, states.FAIL if value is None else states.COMPLETE)
