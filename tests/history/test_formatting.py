import math

import pytest

from allranks.history import curves, formatting
from allranks.history.records import Point, Progress, RunRecord, Status, StepRecord, Verdict
from allranks.text import duration, number, plain, shortened


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "–"),
        (math.nan, "–"),
        (-3.0, "0.00 s"),
        (0.004, "0.00 s"),
        (0.42, "0.42 s"),
        (0.996, "1.0 s"),
        (3.24, "3.2 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (123, "2 min 03 s"),
        (3599.9, "1 h 00 min"),
        (3840, "1 h 04 min"),
        (86400 * 2 + 3 * 3600, "2 d 3 h"),
    ],
)
def test_duration(seconds: float | None, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(0.9, "0 s"), (3.9, "3 s"), (59.9, "59 s"), (61.2, "1 min 01 s")])
def test_a_clock_counts_whole_seconds_that_have_passed(seconds: float, expected: str) -> None:
    assert duration(seconds, whole=True) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (20.0, "20"),
        (1234567.0, "1,234,567"),
        (0.977777, "0.9778"),
        (-0.5, "-0.5"),
        (12345.678, "12,346"),
        (1234567.8, "1.23e+06"),
        (0.0000123, "1.23e-05"),
        (1e300, "1e+300"),
        (math.nan, "NaN"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
    ],
)
def test_number(value: float, expected: str) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title", ""),
        ("10%\r50%\r100%\r\ndone\r", "100%\ndone"),
        ("tab\tand\nline stay", "tab\tand\nline stay"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("\u202ereversed", "reversed"),
        ("torn \ud800 surrogate", "torn \ufffd surrogate"),
        ("über ✓ 数", "über ✓ 数"),
    ],
)
def test_plain_text_steers_nothing(text: str, expected: str) -> None:
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rank": 3, "instance_rank": 1, "exit_code": 1}, "rank 3 on instance 1: reason"),
        ({"rank": 3, "exit_code": 7, "reason": "exit code 7"}, "rank 3 ended with exit code 7"),
        ({"rank": 3, "exit_code": 137, "reason": "ended by SIGKILL"}, "rank 3 ended by SIGKILL"),
        ({"rank": 2, "worker": 5, "where": "train.py:10"}, "rank 5: reason (train.py:10)"),
        (
            {"rank": 3, "instance_rank": 1, "signal": "SIGKILL", "reason": "ended by SIGKILL"},
            "rank 3 on instance 1 ended by SIGKILL",
        ),
        ({"signal": "SIGTERM"}, "ended by SIGTERM"),
        ({"rank": 2, "reason": ""}, "rank 2"),
        ({}, ""),
    ],
)
def test_cause(changes: dict[str, object], expected: str) -> None:
    assert formatting.cause(Verdict(**{"step": "train", "reason": "reason", **changes})) == expected  # type: ignore[arg-type]


FOLDER = "/home/someone/a project/.allranks/runs/calm_otter/steps/train"
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"No file {FOLDER}/x.csv", f"No file {FOLDER}/x.csv"),
        (f"{MISSING}'{FOLDER}/data/x.csv'", f"{MISSING}'/home/…/data/x.csv'"),
        (f"{MISSING}'{'a/' * 30}x.csv'", f"{MISSING}'a/a/…/a/x.csv'"),
        (f"cannot read https://host.example{'/a' * 60}/x.csv: 404", "cannot read https://host.example/…/a/x.csv: 404"),
        (f"{MISSING}/a/{'f' * 90}.csv", f"{MISSING}/a/{'f' * 17}…{'f' * 21}.csv"),
        (f"{'word ' * 19}/a/b/c.csv is missing", f"{'word ' * 19}/a/b/c.csv …"),
        (f"ValueError: {'x' * 100}", f"ValueError: {'x' * 88} …"),
    ],
    ids=["short", "a path", "relative", "a URI", "a long name", "at the end", "no path"],
)
def test_a_headline_is_not_cut_inside_a_path(text: str, expected: str) -> None:
    assert shortened(text) == expected


@pytest.mark.parametrize(
    ("distribution", "expected"), [("none", "1 process"), ("pytorch", "pytorch 1 x 1"), ("mpi", "mpi 1 x 1")]
)
def test_layout(distribution: str, expected: str) -> None:
    assert formatting.layout(distribution, 1, 1) == expected


def make_step(status: Status, **changes: object) -> StepRecord:
    return StepRecord("train", "", "", "none", 1, 1, (), status, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (make_step(Status.NOT_STARTED), None),
        (make_step(Status.RUNNING, started=100.0), 50.0),
        (make_step(Status.COMPLETED, started=100.0, ended=110.0), 10.0),
        (make_step(Status.COMPLETED, started=100.0, ended=110.0, reused_from="earlier"), None),
        (make_step(Status.INTERRUPTED, started=100.0), None),
        (make_step(Status.COMPLETED, started=100.0, ended=90.0), 0.0),
    ],
)
def test_elapsed(step: StepRecord, expected: float | None) -> None:
    assert formatting.elapsed(step, 150.0) == expected


def points(*values: float) -> list[Point]:
    return [Point(step, value, 10.0 * step) for step, value in enumerate(values)]


def test_metrics_of_one_family_differ_in_what_they_are_measured_on() -> None:
    names = ["train_loss", "accuracy", "validation_loss", "val/accuracy", "learning_rate", "train"]
    assert curves.families(dict.fromkeys(names, ())) == {
        "loss": ["train_loss", "validation_loss"],
        "accuracy": ["accuracy", "val/accuracy"],
        "learning rate": ["learning_rate"],
        "train": ["train"],
    }


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("train_loss", (2.0, 0.5, 0.5, 1.0), 1),
        ("val_accuracy", (0.1, 0.9, 0.8), 1),
        ("loss", (math.nan, 3.0, -math.inf), 1),
        ("learning_rate", (1.0, 2.0), None),
        ("loss", (math.nan,), None),
        ("loss", (), None),
    ],
)
def test_the_best_value(name: str, values: tuple[float, ...], expected: int | None) -> None:
    best = curves.best(name, points(*values))
    assert (best and best.step) == expected


def test_the_headline_prefers_accuracy_then_loss_of_late_steps() -> None:
    train = make_step(Status.COMPLETED)
    train.metrics = {"loss": points(2.0, 1.0), "learning_rate": points(0.1), "accuracy": points(0.8)}
    evaluate = make_step(Status.COMPLETED)
    evaluate.metrics = {"test_accuracy": points(0.9), "empty": []}
    run = RunRecord("r", "r", "", "", "", steps=[train, evaluate])
    assert [name for _, name, _ in curves.headline(run.steps, 10)] == ["test_accuracy", "accuracy", "loss"]


def test_thinning_keeps_every_stretchs_extremes_and_its_gaps() -> None:
    curve = [(float(x), math.sin(x / 50)) for x in range(10_000)]
    curve[4321] = (4321.0, 9.0)
    curve[5000:5500] = [(float(x), math.nan) for x in range(5000, 5500)]
    thinned = curves.thin(curve, 100)
    assert len(thinned) <= 400
    assert (4321.0, 9.0) in thinned
    assert thinned[0] == curve[0]
    assert thinned[-1] == curve[-1]
    assert [x for x, _ in thinned] == sorted(x for x, _ in thinned)
    assert any(math.isnan(y) for _, y in thinned)


def test_a_short_curve_is_left_as_it_is() -> None:
    assert curves.thin([(0.0, 1.0), (1.0, 2.0)], 100) == [(0.0, 1.0), (1.0, 2.0)]


@pytest.mark.parametrize(
    ("progress", "values", "expected"),
    [
        (Progress(3, 10), (1.0, 1.0, 1.0), 70.0),
        (Progress(10, 10), (1.0, 1.0), 0.0),
        (Progress(3, None), (1.0, 1.0), None),
        (Progress(3, 10), (1.0,), None),
        (None, (1.0, 1.0), None),
    ],
)
def test_the_time_that_is_left(progress: Progress | None, values: tuple[float, ...], expected: float | None) -> None:
    step = make_step(Status.RUNNING, progress=progress)
    step.metrics = {"loss": points(*values)}
    assert curves.remaining(step) == expected
