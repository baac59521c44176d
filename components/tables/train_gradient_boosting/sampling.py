"""Make LightGBM's random draws a function of the iteration, so that a resumed training has the draws of an
uninterrupted one. LightGBM itself starts again with its first draw."""

from collections.abc import Mapping
from typing import Any

import lightgbm
import numpy as np

from allranks_steps.messages import bad_input

FRACTIONS = ("bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction")
"""Fractions of the rows that a tree is built from: of all rows, and of each of two classes."""

LEAST_ROWS = 16
"""Minimum mean number of rows in a rank's sample. LightGBM fails on a sample without rows."""

NEVER = 2**31 - 1
"""A bagging_freq with which LightGBM never draws rows."""

NOT_RESUMABLE = {
    "boosting": {
        "dart": "it changes earlier trees",
        "rf": "LightGBM adds no trees to a random forest",
        "random_forest": "LightGBM adds no trees to a random forest",
        "goss": "LightGBM samples no rows in the first iterations after a checkpoint",
    },
    "data_sample_strategy": {"goss": "LightGBM samples no rows in the first iterations after a checkpoint"},
}
"""Parameter values with which a resumed training would build different trees, with the reasons."""


def check_resumable(parameters: Mapping[str, Any]) -> None:
    """Raise InputError for a parameter with which a training cannot resume with the same trees."""
    for name, values in NOT_RESUMABLE.items():
        value = str(parameters.get(name, "")).lower()
        if value in values:
            found = f"{name}={value}, with which an evicted training cannot resume: {values[value]}"
            raise bad_input("input params", found, f"another {name}", "leave it out")
    if _is_true(parameters, "use_quantized_grad", False) and _is_true(parameters, "stochastic_rounding", True):
        found = "use_quantized_grad, with which an evicted training rounds otherwise than an uninterrupted one"
        raise bad_input("input params", found, "stochastic_rounding=false with it", "add stochastic_rounding=false")


def check_rows(parameters: Mapping[str, Any], rows: int) -> None:
    """Raise InputError if bagging leaves a rank too few rows. rows: training rows of the rank with the fewest"""
    for name, fraction in _fractions(parameters).items():
        if rows * fraction < LEAST_ROWS:
            found = f"{fraction:g} of the {rows} rows of a rank"
            fix = f"set a larger {name}, give more rows, or take fewer instances"
            raise bad_input(name, found, f"at least {LEAST_ROWS} rows", fix)


class Sampling:
    """A callback of LightGBM that gives it, before each iteration, seeds that follow from the iteration and the seed.

    parameters: LightGBM's, by their main names
    rank:       the rank of this process, which samples its own rows. All ranks draw the same features
    """

    before_iteration = True
    order = 0

    def __init__(self, parameters: Mapping[str, Any], rank: int) -> None:
        self._parameters, self._rank = parameters, rank
        self._fractions = _fractions(parameters)
        self._frequency = int(parameters["bagging_freq"])
        draws = float(parameters["feature_fraction"]) < 1 or float(parameters.get("feature_fraction_bynode", 1)) < 1
        self._seeds = ["feature_fraction_seed"] * draws + ["extra_seed"] * _is_true(parameters, "extra_trees", False)
        self._begun = self._lowered = False

    @property
    def initial(self) -> dict[str, int]:
        """The parameters with which LightGBM must start."""
        return {"bagging_freq": NEVER} if self._fractions else {}

    def __call__(self, environment: lightgbm.callback.CallbackEnv) -> None:
        iteration = environment.iteration  # with the trees before it
        changed: dict[str, Any] = {name: self._seed(name, iteration) for name in self._seeds}
        if self._fractions and (not self._begun or iteration % self._frequency == 0):
            changed |= {"bagging_seed": self._seed("bagging_seed", iteration // self._frequency, self._rank)}
            # LightGBM heeds a new seed only with a new fraction. It compares multiples of 2**-15 with the fraction, so
            # that this one draws the same rows.
            self._lowered = not self._lowered
            changed |= {name: fraction * (1 - 1e-9 * self._lowered) for name, fraction in self._fractions.items()}
        self._begun = True
        if changed:
            environment.model.reset_parameter(changed)

    def _seed(self, name: str, *draw: int) -> int:
        base = int(self._parameters.get(name, self._parameters["seed"]))
        return int(np.random.SeedSequence([base, *draw]).generate_state(1)[0]) // 2


def _fractions(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Return the fractions below 1; {} without bagging."""
    if not int(parameters["bagging_freq"]):
        return {}
    fractions = {name: float(parameters.get(name, 1)) for name in FRACTIONS}
    return {name: fraction for name, fraction in fractions.items() if fraction < 1}


def _is_true(parameters: Mapping[str, Any], name: str, default: bool) -> bool:
    return str(parameters.get(name, default)).lower() in ("true", "1", "+")
