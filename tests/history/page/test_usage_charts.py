"""The resource usage of steps on the page of a run."""

from __future__ import annotations

import pytest

from allranks.history.page.figures import usage_of
from allranks.history.page.page import page
from allranks.history.records import StepRecord
from allranks.history.usage import RankUsage, Sample
from run_records import BEGIN, NOW, make_ranks, make_run, make_step
from shown_page import Page

GB = 10**9


def _step(name: str, instances: int, processes: int, samples: int, *, gpus: bool = False) -> StepRecord:
    """A step in which rank r uses r + 1 tenths of a core, and r + 1 GB."""
    step = make_step(name, distribution="pytorch", instance_count=instances, process_count_per_instance=processes)
    step.started, step.ended = BEGIN, BEGIN + samples + 1
    step.ranks = make_ranks(instances, processes)
    for rank in step.ranks:
        rank.started, rank.ended = step.started, step.ended
        rank.cpu_seconds, rank.peak_memory = (rank.rank + 1) / 10 * (samples + 1), (rank.rank + 1) * GB
    for instance in range(instances):
        of_instance = [rank.rank for rank in step.ranks if rank.instance_rank == instance]
        step.usage[instance] = [
            Sample(
                BEGIN + time,
                {
                    rank: RankUsage(
                        (rank + 1) / 10 * time, (rank + 1) * GB, 50.0 if gpus else None, GB if gpus else None
                    )
                    for rank in of_instance
                },
                received=10**6 * time,
                sent=2 * 10**6 * time,
            )
            for time in range(1, samples + 1)
        ]
    return step


def test_a_step_shows_the_usage_of_its_ranks_over_time() -> None:
    step = _step("train", 2, 2, 20, gpus=True)
    usage = usage_of([step], "rack", NOW)["train"]
    assert dict(usage.facts) == {
        "mean CPU per rank": "10% to 40%",
        "CPU time": "21.0 s",
        "peak memory per rank": "1.0 GB to 4.0 GB",
    }
    curves = {chart.title: {series.name: series.last for series in chart.series} for chart in usage.charts}
    assert curves == {
        "CPU, % of a core": {"rank 0": "10", "rank 1": "20", "rank 2": "30", "rank 3": "40"},
        "memory, GB": {"rank 0": "1", "rank 1": "2", "rank 2": "3", "rank 3": "4"},
        "GPU, %": dict.fromkeys(("rank 0", "rank 1", "rank 2", "rank 3"), "50"),
        "GPU memory, GB": dict.fromkeys(("rank 0", "rank 1", "rank 2", "rank 3"), "1"),
        "network, MB/s": {
            "instance 0 received": "1",
            "instance 0 sent": "2",
            "instance 1 received": "1",
            "instance 1 sent": "2",
        },
    }
    text = Page(page(make_run(step), NOW)).text
    for said in ("Resource usage", "mean CPU per rank 10% to 40%", "Network: of each instance", "rank 3"):
        assert said in text, said


def test_of_many_ranks_the_extremes_and_the_mean_are_drawn() -> None:
    charts = usage_of([_step("train", 8, 8, 20)], "rack", NOW)["train"].charts
    assert {chart.title: {series.name: series.last for series in chart.series} for chart in charts} == {
        "CPU, % of a core": {"highest": "640", "mean": "325", "lowest": "10"},
        "memory, GB": {"highest": "64", "mean": "32.5", "lowest": "1"},
        "network, MB/s": {"highest": "2", "mean": "1.5", "lowest": "1"},
    }


def test_loopback_instances_say_that_their_network_is_not_measured() -> None:
    step = _step("train", 2, 1, 20)
    step.usage = {
        instance: [Sample(sample.time, sample.ranks) for sample in samples] for instance, samples in step.usage.items()
    }
    usage = usage_of([step], "loopback", NOW)["train"]
    assert [chart.title for chart in usage.charts] == ["CPU, % of a core", "memory, GB"]
    assert usage.note == "Network: not measured, because loopback instances share the network of this machine."


def test_a_short_step_shows_its_totals_alone() -> None:
    step = make_step("short", ranks=make_ranks(1, 1))
    step.ranks[0].cpu_seconds, step.ranks[0].peak_memory = 0.3, 12_000_000
    usage = usage_of([step], "rack", NOW)["short"]
    assert usage.charts == ()
    assert dict(usage.facts)["peak memory per rank"] == "12.0 MB"


def test_a_step_of_which_nothing_is_known_shows_nothing() -> None:
    reused = _step("reused", 1, 1, 20)
    reused.reused_from = "brave_heron"
    assert usage_of([make_step("old", ranks=make_ranks(1, 1)), reused], "rack", NOW) == {}
    assert "Resource usage" not in page(make_run(reused), NOW)


@pytest.mark.slow
def test_the_page_of_a_run_with_many_ranks_and_steps_stays_small() -> None:
    steps = [_step(f"train_{number}", 8, 8, 500, gpus=True) for number in range(3)]
    html = page(make_run(*steps), NOW)
    assert len(html.encode()) < 500_000
    assert Page(html).text.count("Resource usage") == len(steps)
