"""What evictions changed in a training, from what its ranks have recorded."""

import math
from dataclasses import replace

import pytest

from allranks_lab.rehearsal.comparison import compare
from allranks_lab.rehearsal.report import Report, advice
from allranks_lab.rehearsal.steps import Attempt, RankSteps, TrainingStep

STEPS = 12
EPOCH = 4


def step(at: int, rank: int, **changed: object) -> TrainingStep:
    """A training step of an uninterrupted training of two ranks."""
    epoch, position = divmod(at - 1, EPOCH)
    whole = TrainingStep(
        at,
        time=float(at),
        loss=1 / at,
        rates=(0.1 * at,),
        samples=(100 * rank + position,),
        random={"torch": f"before {at}", "Python": "unused"},
        random_after={"torch": f"after {at}", "Python": "unused"},
        weights=f"weights {at}",
        optimizer=f"moments {at}",
        epoch=epoch,
    )
    return replace(whole, **changed)


def attempt(number: int, first: int, last: int, start: dict[str, object], **changed: object) -> Attempt:
    """An attempt that starts after the step before `first`. changed: of its steps; start: of its start"""
    before = first - 1
    whole = {"known": True, "weights": f"weights {before}", "optimizer": f"moments {before}", "world": "2"}
    whole |= {"random": {"torch": f"after {before}", "Python": "unused"}} | start
    ranks = {
        rank: RankSteps(before, **whole, steps=[step(at, rank, **changed) for at in range(first, last + 1)])
        for rank in (0, 1)
    }
    return Attempt(number, ranks)


FRESH = {"known": False, "optimizer": ""}
UNTOUCHED = [attempt(0, 1, STEPS, FRESH)]
FIRST = attempt(0, 1, 6, FRESH)


def report(*attempts: Attempt) -> Report:
    training = compare("train", UNTOUCHED, attempts, {0: 6.5})
    return Report("p", "a", "b", "Completed", len(attempts) - 1, len(attempts) - 1, 1, False, {}, (training,))


def test_a_training_that_resumes_within_an_epoch() -> None:
    found = report(FIRST, attempt(1, 6, STEPS, {}))
    (training,) = found.trainings
    (resumption,) = training.resumptions
    assert (resumption.reached, resumption.resumed, training.redone, resumption.lost) == (6, 5, 1, ())
    assert (training.repeated, training.missing, training.largest_difference) == (0, 0, 0.0)
    assert training.weights_equal
    assert not found.problems


LOST: dict[str, tuple[dict[str, object], dict[str, object], str]] = {
    "optimizer": ({"optimizer": ""}, {"weights": "other"}, "the optimizer: its state, such as moments, is empty"),
    "scheduler": ({}, {"rates": (0.1,), "weights": "other"}, "the learning rate: it is another one"),
    "data": ({}, {"samples": (1,), "weights": "other"}, "the order of the data: other samples follow"),
    "random": (
        {"random": {"torch": "new"}},
        {"random": {"torch": "x"}, "weights": "other"},
        "the random state of torch: save",
    ),
    "loader": ({}, {"random": {"torch": "x"}, "weights": "other"}, "a new data loader has drawn from it"),
    "weights": ({"known": False}, {"weights": "other"}, "the weights: they are those of no step so far"),
    "rounding": ({}, {"weights": "other"}, "nothing that is recorded was lost"),
}


@pytest.mark.parametrize(("start", "changed", "expected"), LOST.values(), ids=LOST)
def test_what_a_script_does_not_restore_is_named(
    start: dict[str, object], changed: dict[str, object], expected: str
) -> None:
    found = report(FIRST, attempt(1, 6, STEPS, start, **changed))
    (text,) = advice(found.trainings[0])
    assert expected in text
    assert "train: the final weights differ, from training step 6 on" in found.problems


def test_samples_that_are_seen_twice_within_an_epoch() -> None:
    again = attempt(1, 7, STEPS, {})
    for number, rank in again.ranks.items():  # it reads the epoch from its beginning
        rank.steps[:2] = [
            replace(rank.steps[0], samples=step(5, number).samples),
            replace(rank.steps[1], samples=step(6, number).samples),
        ]
    training = report(FIRST, again).trainings[0]
    assert (training.repeated, training.missing) == (4, 4)


def test_an_elastic_training_may_differ_by_rounding() -> None:
    for difference, problems in ((1e-6, 0), (1e-3, 1)):
        again = attempt(1, 6, STEPS, {}, weights="other")
        for rank in again.ranks.values():
            rank.steps[3] = replace(rank.steps[3], loss=1 / 9 + difference)
        assert len(replace(report(FIRST, again), elastic=True).problems) == problems


def test_a_training_that_saves_nothing() -> None:
    late = attempt(0, 1, 9, FRESH)
    found = report(late, attempt(1, 1, STEPS, {"known": True, "optimizer": ""}))
    assert found.trainings[0].redone == 9
    assert found.problems == [
        "train: it started again from step 0 after each eviction: it saves no checkpoint, or loads none"
    ]
    assert "Save a checkpoint" in next(advice(found.trainings[0]))


def test_a_training_that_is_not_repeatable() -> None:
    found = report(attempt(0, 1, 6, FRESH, weights="other", loss=2.0), attempt(1, 6, STEPS, {}, weights="other"))
    assert "train: it is not repeatable: its results differ before the first eviction. Set its seeds" in found.problems


def test_a_loss_that_is_not_a_number_differs_from_any_other() -> None:
    (training,) = report(FIRST, attempt(1, 6, STEPS, {}, loss=math.nan)).trainings
    assert training.largest_difference == math.inf
    assert training.loss_from == 6
