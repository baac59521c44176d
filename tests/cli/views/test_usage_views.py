"""The resource usage of steps in the live view, the tables and the summary."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from allranks.cli.views.runs import print_run
from allranks.cli.views.summary import summary
from allranks.cli.views.tree import tree
from allranks.history.records import RankRecord, RunRecord, Status, StepRecord
from allranks.history.usage import RankUsage, Sample

NOW = 1783166584.0
MB = 10**6

Screens = Callable[..., Any]


def _step(name: str = "train", ranks: int = 4, gpus: bool = False, status: Status = Status.RUNNING) -> StepRecord:
    """A step whose ranks have used a whole core for 10 s, and in the last second 10 % more for each number of rank."""
    step = StepRecord(name, "", "c", "pytorch", 2, ranks // 2, (), status, started=NOW - 11)
    step.ranks = [RankRecord(rank, rank * 2 // ranks, 0, "host", status, step.started) for rank in range(ranks)]
    for rank in step.ranks:
        rank.cpu_seconds, rank.peak_memory = 9.9 + rank.rank / 10, 500 * MB
        extra = (80.0 + rank.rank, 2000 * MB) if gpus else ()
        step.usage.setdefault(rank.instance_rank, []).extend(
            [
                Sample(NOW - 2, {rank.rank: RankUsage(9.0, 400 * MB)}),
                Sample(NOW - 1, {rank.rank: RankUsage(9.9 + rank.rank / 10, 500 * MB, *extra)}),
            ]
        )
    if status.ended:
        step.ended = NOW - 1
        for rank in step.ranks:
            rank.ended = NOW - 1
    return step


def _run(*steps: StepRecord) -> RunRecord:
    return RunRecord("calm_otter", "digits", "", "digits.py", "rack", Status.RUNNING, NOW - 12, steps=list(steps))


def _drawn(screen: Screens, run: RunRecord, width: int = 80) -> list[str]:
    console = screen(width)
    console.print(tree(run, NOW, width))
    return console.lines


def test_a_running_step_shows_what_its_ranks_use_together(screen: Screens) -> None:
    (row,) = [line for line in _drawn(screen, _run(_step())) if "train" in line]
    assert row.endswith("cpu 420% · 2.0 GB")


def test_gpus_are_shown_with_their_memory(screen: Screens) -> None:
    (row,) = [line for line in _drawn(screen, _run(_step(gpus=True)), width=120) if "train" in line]
    assert row.endswith("cpu 420% · 2.0 GB · gpu 82% 8.0 GB")


def test_a_step_without_samples_shows_none(screen: Screens) -> None:
    assert not [line for line in _drawn(screen, _run(replace(_step(), usage={}))) if "cpu" in line]


def test_a_narrow_terminal_cuts_the_usage_off(screen: Screens) -> None:
    assert max(map(len, _drawn(screen, _run(_step()), width=40))) <= 40


def test_the_summary_lists_mean_cpu_and_peak_memory_of_a_rank() -> None:
    train = _step(status=Status.COMPLETED)
    train.ranks[3].peak_memory, train.ranks[3].peak_gpu_memory = 1500 * MB, 3000 * MB
    short = replace(_step("short", status=Status.COMPLETED), ended=NOW - 10.5)
    reused = replace(_step("reused", status=Status.COMPLETED), reused_from="brave_heron")
    run = _run(train, short, reused)
    run.status, run.ended = Status.COMPLETED, NOW
    lines = summary(run).plain.splitlines()
    place = lines.index("  resources per rank: mean CPU, peak memory")
    assert lines[place + 1] == "    train  cpu 99% to 102%  memory 500 MB to 1.5 GB  gpu memory 3.0 GB  4 ranks"
    assert len(lines) == place + 2


def test_of_many_steps_the_summary_lists_those_with_the_most_cpu_time() -> None:
    steps = [_step(f"step_{number}", status=Status.COMPLETED) for number in range(10)]
    for number, step in enumerate(steps):
        step.ranks[0].cpu_seconds = 10.0 * number
    run = _run(*steps)
    run.status, run.ended = Status.COMPLETED, NOW
    text = summary(run).plain
    assert [f"step_{number}" in text for number in range(10)] == [False] * 4 + [True] * 6
    assert "... 4 steps more" in text


def test_the_table_of_a_step_s_ranks_shows_their_usage(screen: Screens) -> None:
    console = screen(100)
    print_run(console, _run(_step(status=Status.COMPLETED)), path="train")
    (row,) = [line for line in console.lines if line.split()[:3] == ["2", "1", "host"]]
    assert row.split()[-3:] == ["101%", "500", "MB"]
