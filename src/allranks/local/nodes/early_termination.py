"""The policies that stop trials of a sweep, as Azure ML documents them ("Hyperparameter tuning a model (v2)").

An interval is one value of the primary metric that a trial has logged. A trial is compared with the others at the same
number of intervals, and with those that ended before it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from statistics import fmean, median

from allranks.plan.sweep import EarlyTermination

Curves = Mapping[int, Sequence[float]]
"""The values of the primary metric that each trial has logged, by its number; larger is better."""


def reason_to_stop(
    policy: EarlyTermination, curves: Curves, trial: int, interval: int, ended: Container[int] = ()
) -> str:
    """Return why a trial is stopped at an interval that it has reached; "" if it continues.

    ended: the trials that have ended, which are compared even if they ended before that interval
    """
    if interval < policy.delay or interval % policy.interval:
        return ""
    reached = {
        number: curve[:interval] for number, curve in curves.items() if len(curve) >= interval or number in ended
    }
    return _POLICIES[policy.policy](policy, reached, trial)


def _bandit(policy: EarlyTermination, curves: Curves, trial: int) -> str:
    best, own = max(map(max, curves.values())), max(curves[trial])
    factor = policy.slack_factor or 0.0
    # For a positive metric to maximize, this is best / (1 + factor); for one to minimize, best * (1 + factor).
    share = factor / (1 + factor) if best > 0 else factor
    least = best - abs(best) * share - (policy.slack_amount or 0.0)
    return "it is outside of the slack around the best trial" if own < least else ""


def _median_stopping(_: EarlyTermination, curves: Curves, trial: int) -> str:
    is_worse = max(curves[trial]) < median(map(fmean, curves.values()))
    return "its best value is worse than the median of the trials' averages" if is_worse else ""


def _truncation_selection(policy: EarlyTermination, curves: Curves, trial: int) -> str:
    order = sorted(curves, key=lambda number: (curves[number][-1], -number))
    stopped = order[: len(order) * policy.percentage // 100]
    return f"it is among the worst {policy.percentage} % of the trials" if trial in stopped else ""


_POLICIES: dict[str, Callable[[EarlyTermination, Curves, int], str]] = {
    "bandit": _bandit,
    "median_stopping": _median_stopping,
    "truncation_selection": _truncation_selection,
}
