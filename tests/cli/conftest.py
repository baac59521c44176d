"""Runs made by hand, and a terminal that can be read."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from allranks.history.records import OutputRecord, Point, Progress, RankRecord, RunRecord, Status, StepRecord, Verdict

BEGIN = 1783166584.0


class Screen(Console):
    """A console that remembers what was written to it."""

    def __init__(self, width: int, terminal: bool) -> None:
        self.text = io.StringIO()
        super().__init__(
            file=self.text, width=width, height=40, force_terminal=terminal, highlight=False, markup=False, emoji=False
        )

    @property
    def lines(self) -> list[str]:
        return self.text.getvalue().splitlines()


@pytest.fixture
def screen() -> Callable[..., Screen]:
    def make(width: int = 80, terminal: bool = False) -> Screen:
        return Screen(width, terminal)

    return make


def make_ranks(instances: int, processes: int, status: Status) -> list[RankRecord]:
    return [
        RankRecord(rank, rank // processes, rank % processes, f"instance-{rank // processes}", status, BEGIN + 2)
        for rank in range(instances * processes)
    ]


@pytest.fixture
def running() -> RunRecord:
    """Data reused, training on 2 x 2 ranks under way, evaluation waiting."""
    prepare = StepRecord("prepare", "", "prepare_images", "none", 1, 1, (), Status.COMPLETED, reused_from="brave_heron")
    train = StepRecord("train", "", "train_classifier", "pytorch", 2, 2, ("prepare",), Status.RUNNING)
    train.started = BEGIN + 1
    train.ranks = make_ranks(2, 2, Status.RUNNING)
    train.progress = Progress(200, 400, 3)
    train.metrics = {
        "train_loss": [Point(step, 2 - step / 200, BEGIN + 2 + step / 20) for step in range(200)],
        "validation_accuracy": [Point(0, 0.5, BEGIN + 2), Point(100, 0.875, BEGIN + 7), Point(150, 0.75, BEGIN + 9)],
    }
    evaluate = StepRecord("evaluate", "", "evaluate_classifier", "pytorch", 2, 2, ("prepare", "train"))
    run = RunRecord("calm_otter", "digits", "Digits", "pipelines/digits.py", "rack", Status.RUNNING, BEGIN)
    run.inputs = {"epochs": "5"}
    run.steps = [prepare, train, evaluate]
    return run


@pytest.fixture
def completed(running: RunRecord) -> RunRecord:
    for step in running.steps:
        step.status = Status.COMPLETED
        step.started, step.ended = BEGIN + 1, BEGIN + 13.4
        for rank in step.ranks:
            rank.status, rank.ended, rank.exit_code = Status.COMPLETED, BEGIN + 13, 0
    running.step("train").outputs = [OutputRecord("model", "uri_folder", "/runs/calm_otter/model")]
    running.step("evaluate").metrics = {"test_accuracy": [Point(0, 0.9778, BEGIN + 13)]}
    running.step("evaluate").notes = ["rank 2 aborted at exit; forgiven"]
    running.status, running.ended = Status.COMPLETED, BEGIN + 14
    running.outputs = {"model": "/runs/" + "very_long_folder/" * 8 + "model"}
    running.page = "/runs/calm_otter/run.html"
    return running


@pytest.fixture
def failed(running: RunRecord) -> RunRecord:
    train = running.step("train")
    train.status, train.ended = Status.FAILED, BEGIN + 12
    for rank in train.ranks:
        rank.status, rank.signal, rank.ended = Status.CANCELED, "SIGTERM", BEGIN + 12
    train.ranks[3].status, train.ranks[3].signal, train.ranks[3].exit_code = Status.FAILED, None, 17
    train.verdict = Verdict(
        step="train",
        reason="ValueError: bad batch",
        rank=3,
        instance_rank=1,
        exit_code=17,
        log="/runs/calm_otter/train/user_logs/std_log_process_3.txt",
        tail=("step 198", "ValueError: bad batch"),
    )
    running.status, running.ended = Status.FAILED, BEGIN + 12.5
    return running
