"""Which trials the policies stop: the examples of Azure ML's documentation, and their mirror image."""

import pytest

from allranks.local.nodes.sweep import reason_to_stop
from allranks.plan.sweep import EarlyTermination

POLICIES = {
    # 0.8 / (1 + 0.2) = 0.667
    "bandit, factor": (EarlyTermination("bandit", slack_factor=0.2), [[0.8], [0.67], [0.66]], {2}),
    "bandit, amount": (EarlyTermination("bandit", slack_amount=0.2), [[0.8], [0.61], [0.59]], {2}),
    # Metrics to minimize are negated: 0.2 * (1 + 0.5) = 0.3
    "bandit, minimize": (EarlyTermination("bandit", slack_factor=0.5), [[-0.2], [-0.29], [-0.31]], {2}),
    "bandit compares the best so far": (
        EarlyTermination("bandit", slack_factor=0.1),
        [[0.8, 0.5], [0.2, 0.79], [0.7, 0.1]],
        {2},
    ),
    "median of the averages": (EarlyTermination("median_stopping"), [[1, 9], [2, 4], [2, 2]], {2}),
    "the worst 40 %": (
        EarlyTermination("truncation_selection", percentage=40),
        [[1], [2], [3], [4], [5]],
        {0, 1},
    ),
    "the worst 40 % of two": (EarlyTermination("truncation_selection", percentage=40), [[1], [2]], set()),
    "alone": (EarlyTermination("median_stopping"), [[3, 2, 1]], set()),
    "before the delay": (EarlyTermination("bandit", delay=3, slack_factor=0.1), [[9, 9], [1, 1]], set()),
    "between intervals": (EarlyTermination("bandit", interval=3, slack_factor=0.1), [[9, 9], [1, 1]], set()),
    "others have not reached it": (EarlyTermination("bandit", slack_factor=0.1), [[9], [1, 1]], set()),
}


def test_a_trial_is_compared_with_those_that_ended_before_its_interval() -> None:
    policy, curves = EarlyTermination("bandit", slack_factor=0.1), {0: [9.0], 1: [1.0, 1.0, 1.0]}
    assert reason_to_stop(policy, curves, 1, 3) == ""
    assert reason_to_stop(policy, curves, 1, 3, {0}) != ""


@pytest.mark.parametrize(("policy", "curves", "stopped"), POLICIES.values(), ids=POLICIES)
def test_policy(policy: EarlyTermination, curves: list[list[float]], stopped: set[int]) -> None:
    by_trial = dict(enumerate(curves))
    found = {trial for trial, curve in by_trial.items() if reason_to_stop(policy, by_trial, trial, len(curve))}
    assert found == stopped
