"""Each mistake in a sweep, or in its trial, ends in one message that names the key."""

from dataclasses import replace
from typing import Any

import pytest

from allranks.plan.graph import Graph, Plan, Step, Sweep
from allranks.plan.ports import Input, Literal
from allranks.plan.sweep import EarlyTermination, Parameter, Sampling, SweepLimits
from plan_findings import check, warnings

BODY = Step(
    "tune",
    "python train.py ${{inputs.lr}} ${{inputs.layers}}",
    inputs=(Input("lr", "number", minimum=0.001, maximum=1.0), Input("layers", "integer")),
)
SPACE = {
    "lr": Parameter("lr", "uniform", (0.01, 0.1)),
    "layers": Parameter("layers", "choice", (), (Literal(2), Literal(4))),
}
TUNE = Sweep("tune", BODY, tuple(SPACE.values()), "loss")


def space(*parameters: Parameter) -> dict[str, Any]:
    """The search space with these parameters in place of those of the same name."""
    return {"search_space": tuple({**SPACE, **{each.name: each for each in parameters}}.values())}


def lr(distribution: str, *numbers: float | None) -> dict[str, Any]:
    return space(Parameter("lr", distribution, numbers))


def layers(*values: str | float) -> dict[str, Any]:
    return space(Parameter("layers", "choice", (), tuple(map(Literal, values))))


def stopped_by(policy: str, **settings: Any) -> dict[str, Any]:
    return {"early_termination": EarlyTermination(policy, **settings)}


MISTAKES: dict[str, tuple[dict[str, Any], str, str]] = {
    "swapped ends": (lr("uniform", 0.1, 0.01), "search_space.lr", "min_value 0.1 is not below max_value 0.01"),
    "no end": (lr("quniform", 0.01, None, 0.01), "search_space.lr", "max_value of quniform is missing"),
    "sigma": (lr("normal", 0.5, 0.0), "search_space.lr", "sigma is 0"),
    "q": (lr("quniform", 0.0, 1.0, -1.0), "search_space.lr", "q is -1"),
    "upper": (lr("randint", 0.0), "search_space.lr", "upper is 0"),
    "exponents that overflow": (lr("loguniform", 1.0, 1000.0), "search_space.lr", "values up to exp(1000)"),
    "values instead of exponents": (lr("loguniform", 0.001, 0.1), "search_space.lr", "1.0"),
    "an end outside of the input's range": (lr("uniform", 0.01, 2.0), "search_space.lr", "2.0"),
    "an empty choice": (layers(), "search_space.layers", "the choice has no values"),
    "a choice of another type": (layers(2, "four"), "search_space.layers", "'four'"),
    "fractions for an integer": (
        space(Parameter("layers", "uniform", (1.0, 4.0))),
        "search_space.layers",
        "2.11",
    ),
    "grid": ({"sampling": Sampling("grid")}, "search_space.lr", "uniform, which grid sampling does not support"),
    "bayesian": (
        {**lr("normal", 0.5, 0.1), "sampling": Sampling("bayesian")},
        "search_space.lr",
        "normal, which bayesian sampling does not support",
    ),
    "an input without a value": ({"search_space": (SPACE["lr"],)}, "inputs.layers", "the input is required"),
    "an unknown parameter in the command": (
        {"body": replace(BODY, command=BODY.command + " ${{search_space.size}}")},
        "command",
        "${{search_space.size}}: there is no such parameter",
    ),
    "none at once": ({"limits": SweepLimits(concurrent=0)}, "limits.max_concurrent_trials", "0"),
    "too many": ({"limits": SweepLimits(total=1001)}, "limits.max_total_trials", "1001"),
    "no time": ({"limits": SweepLimits(timeout=0.0)}, "limits.timeout", "0"),
    "no metric": ({"metric": ""}, "objective.primary_metric", "it is empty"),
    "both slacks": (
        stopped_by("bandit", slack_factor=0.1, slack_amount=0.1),
        "early_termination",
        "slack_factor 0.1, slack_amount 0.1",
    ),
    "no slack": (stopped_by("bandit"), "early_termination", "slack_factor None, slack_amount None"),
    "all": (stopped_by("truncation_selection", percentage=100), "early_termination", "truncation_percentage is 100"),
    "interval": (stopped_by("median_stopping", interval=-1), "early_termination", "evaluation_interval -1"),
    "layout": ({"body": replace(BODY, instance_count=0)}, "resources.instance_count", "0"),
}


@pytest.mark.parametrize(("changes", "key", "found"), MISTAKES.values(), ids=MISTAKES)
def test_mistake(changes: dict[str, Any], key: str, found: str) -> None:
    (problem,) = check(Plan("p", Graph((replace(TUNE, **changes),))))
    assert problem.where == f"step tune, key {key}"
    assert problem.found.startswith(found)


def test_a_parameter_that_the_trial_does_not_read_is_a_warning() -> None:
    plan = Plan("p", Graph((replace(TUNE, **space(Parameter("lrr", "uniform", (0.01, 0.1)))),)))
    assert check(plan) == []
    (problem,) = warnings(plan)
    assert (problem.rule, problem.where) == ("unread-parameter", "step tune, key search_space.lrr")
    assert problem.found == "the trial does not read lrr"


def test_an_empty_search_space() -> None:
    body = replace(BODY, command="python train.py", inputs=())
    (problem,) = check(Plan("p", Graph((replace(TUNE, body=body, search_space=()),))))
    assert problem.where == "step tune, key search_space"


def test_a_right_sweep() -> None:
    assert check(Plan("p", Graph((TUNE,)))) == []
    sampled_by_all = replace(TUNE, **stopped_by("bandit", slack_amount=0.1, delay=3))
    assert check(Plan("p", Graph((sampled_by_all,)))) == []
