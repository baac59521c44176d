"""Sweeps as the executor runs them: which trials, how many at once, the best one, and what a resumed run repeats."""

from dataclasses import replace

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.history.recorder import results_of
from allranks.history.records import Status
from allranks.local.nodes import sweep as sweep_runner
from allranks.plan.graph import Step, Sweep
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output
from allranks.plan.sweep import EarlyTermination, Parameter, Sampling, SweepLimits
from trials import Trial, Trials

BODY = Step(
    "tune",
    "",
    inputs=(Input("lr", "number"), Input("data", "string", GraphInput("given"))),
    outputs=(Output("model", "uri_folder"),),
)
TUNE = Sweep(
    "tune",
    BODY,
    (Parameter("lr", "choice", (), tuple(map(Literal, (0.1, 0.2, 0.3, 0.4)))),),
    "accuracy",
    True,
    Sampling("grid"),
)
AFTER = Step("after", "", inputs=(Input("model", "uri_folder", NodeOutput("tune", "model")),))
ACCURACY = {f"tune.trial[{trial}]": {"accuracy": [0.5, value]} for trial, value in enumerate((0.6, 0.9, 0.4, 0.7))}


def swept(trial_of: Trials, node: Sweep = TUNE, **options: object) -> Trial:
    return trial_of(node, AFTER, **{"inputs": {"given": "digits"}, "logs": ACCURACY, **options})  # type: ignore[arg-type]


def test_the_outputs_of_the_best_trial_are_those_of_the_sweep(trial_of: Trials) -> None:
    trial = swept(trial_of)
    assert trial.execute() is Status.COMPLETED
    assert trial.given["tune.trial[2]"] == {"lr": "0.3", "data": "digits"}
    assert trial.given["after"] == {"model": "/tune.trial[1]/model"}
    record = trial.run.step("tune")
    assert record.result == "trial 1 is the best: accuracy 0.9, lr 0.2"
    described = {"data": "digits", "search_space.lr": "choice(0.1, 0.2, 0.3, 0.4)", "objective": "maximize accuracy"}
    assert record.inputs == described
    assert sorted(point.value for point in record.metrics["accuracy"])[-1] == 0.9
    assert record.progress is not None
    assert (record.progress.done, record.progress.total) == (4, 4)
    assert results_of(trial.run) == {"accuracy": 0.9}


def test_the_smallest_value_is_the_best_of_a_metric_to_minimize(trial_of: Trials) -> None:
    trial = swept(trial_of, replace(TUNE, maximize=False), logs={**ACCURACY, "tune.trial[3]": {"accuracy": [0.3, 0.8]}})
    assert trial.execute() is Status.COMPLETED
    assert trial.given["after"] == {"model": "/tune.trial[3]/model"}


@pytest.mark.parametrize(
    ("limits", "slots", "layout", "most", "trials"),
    [
        (SweepLimits(), 8, 1, 4, 4),
        (SweepLimits(concurrent=2), 8, 1, 2, 4),
        (SweepLimits(total=3), 2, 1, 2, 3),
        (SweepLimits(), 8, 4, 2, 4),
        (SweepLimits(), 2, 4, 1, 4),
    ],
)
def test_limits_and_slots(
    trial_of: Trials, limits: SweepLimits, slots: int, layout: int, most: int, trials: int
) -> None:
    body = replace(BODY, distribution=PyTorch(2), instance_count=layout // 2) if layout > 1 else BODY
    trial = swept(trial_of, replace(TUNE, limits=limits, body=body), slots=slots)
    assert trial.execute() is Status.COMPLETED
    assert max(map(len, trial.at_once)) == most
    assert len(trial.tries) == trials + 1


@pytest.mark.parametrize("go_on", [True, False])
def test_a_failed_trial_does_not_end_the_sweep(trial_of: Trials, go_on: bool) -> None:
    trial = swept(trial_of, ends={"tune.trial[1]": [Status.FAILED]}, go_on=go_on)
    assert trial.execute() is Status.COMPLETED
    assert not trial.halted
    assert trial.given["after"] == {"model": "/tune.trial[3]/model"}


def test_a_sweep_without_a_finished_trial_fails_and_its_trials_run_again_when_it_is_resumed(trial_of: Trials) -> None:
    trial = swept(trial_of, ends={f"tune.trial[{number}]": [Status.FAILED] for number in range(4)})
    assert trial.execute() is Status.FAILED
    verdict = trial.run.step("tune").verdict
    assert verdict is not None
    assert verdict.reason == "none of 4 trials finished: 4 Failed"
    assert trial.states()["after"] is Status.NOT_STARTED
    trial.again()
    assert trial.execute() is Status.COMPLETED
    assert len(trial.tries) == 9


def test_a_metric_that_no_trial_logs_is_named_with_those_that_were_logged(trial_of: Trials) -> None:
    trial = swept(trial_of, replace(TUNE, metric="acuracy", limits=SweepLimits(concurrent=1)))
    assert trial.execute() is Status.FAILED
    verdict = trial.run.step("tune").verdict
    assert verdict is not None
    assert verdict.reason == "no trial that finished has logged acuracy, the primary metric; they logged accuracy"
    assert trial.tries == ["tune.trial[0]"]


def test_why_trials_have_logged_nothing_is_named(trial_of: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allranks.local.tracking.tracked_runs.find_spec", lambda _: None)
    trial = swept(trial_of, replace(TUNE, limits=SweepLimits(concurrent=1)), logs={})
    assert trial.execute() is Status.FAILED
    verdict = trial.run.step("tune").verdict
    assert verdict is not None
    assert "they logged no metrics to MLflow: mlflow is not installed beside allranks" in verdict.reason


def test_resume_repeats_no_trial_that_has_ended(trial_of: Trials) -> None:
    ends = {"tune.trial[0]": [Status.FAILED], "tune.trial[2]": [Status.CANCELED]}
    node = replace(TUNE, sampling=Sampling(), limits=SweepLimits(concurrent=1))
    trial = swept(trial_of, node, ends=ends)
    attempt = trial.attempt

    async def stopped_at_the_third(scope, step, record, share):  # type: ignore[no-untyped-def]
        if record.name == "tune.trial[2]":
            trial.executor.stop()
        await attempt(scope, step, record, share)

    trial.attempt = stopped_at_the_third  # type: ignore[method-assign]
    assert trial.execute() is Status.CANCELED
    given = dict(trial.given)
    trial.attempt = attempt  # type: ignore[method-assign]
    trial.again()
    assert trial.execute() is Status.COMPLETED
    assert trial.tries == [f"tune.trial[{number}]" for number in (0, 1, 2, 2, 3)] + ["after"]
    assert given == {path: trial.given[path] for path in given}
    assert trial.given["after"] == {"model": "/tune.trial[1]/model"}


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_runner, "POLL", 0.0)


@pytest.mark.usefixtures("_at_once")
def test_a_policy_stops_a_trial_once_also_over_a_resume(trial_of: Trials) -> None:
    node = replace(TUNE, early_termination=EarlyTermination("bandit", slack_factor=0.2))
    trial = swept(trial_of, node, holds=["tune.trial[2]"], ends={"after": [Status.FAILED]})
    assert trial.execute() is Status.FAILED
    stopped = trial.run.step("tune.trial[2]")
    assert stopped.status is Status.CANCELED
    reason = "stopped by bandit after 2 intervals: it is outside of the slack around the best trial"
    assert stopped.notes == [reason]
    assert trial.states()["tune"] is Status.COMPLETED
    trial.run.step("tune").status = Status.RUNNING  # as if the engine had been killed before the sweep ended
    trial.again()
    assert trial.execute() is Status.COMPLETED
    assert trial.tries.count("tune.trial[2]") == 1


def test_a_sweep_that_takes_too_long_is_canceled(trial_of: Trials) -> None:
    node = replace(TUNE, limits=SweepLimits(timeout=0.0))
    trial = swept(trial_of, node, holds=["tune.trial[2]"], slots=3)
    assert trial.execute() is Status.CANCELED
    assert trial.states()["tune.trial[2]"] is Status.CANCELED
    assert "tune.trial[3]" not in trial.states()
    assert "limits.timeout" in trial.run.step("tune").notes[0]


def test_a_canceled_sweep_starts_no_more_trials(trial_of: Trials) -> None:
    trial = swept(trial_of, holds=["tune.trial[0]"], slots=1)
    attempt = trial.attempt

    async def canceled(scope, step, record, share):  # type: ignore[no-untyped-def]
        await trial.executor.cancel("tune")
        await attempt(scope, step, record, share)

    trial.attempt = canceled  # type: ignore[method-assign]
    assert trial.execute() is Status.CANCELED
    assert list(trial.states()) == ["tune", "after", "tune.trial[0]"]
