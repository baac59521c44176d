"""Which rank is called steadily slower, by the times of the collectives of all."""

import random
import re
from collections.abc import Callable

import pytest

from allranks.verdict.collectives import Call, Recording, straggler
from run_records import make_ranks

Delay = Callable[[int, int], float]


def _recordings(steps: int, delay: Delay, *, backend: str = "gloo", buckets: int = 3) -> list[Recording]:
    """Return the recordings of four ranks, each of whose steps takes 0.1 s and the delay of the rank in this step.

    buckets: collectives per step, which a rank calls without waiting for the previous one
    """
    calls: list[list[Call]] = [[] for _ in range(4)]
    begin, number = 1000.0, 0
    for step in range(steps):
        ends = [begin + 0.1 + delay(rank, step) for rank in range(4)]
        for bucket in range(buckets):
            number += 1
            for rank, end in enumerate(ends):
                calls[rank].append(Call("0", number, backend, "all_reduce", time=end + 0.001 * bucket))
        begin = max(ends)
    return [Recording(rank, tuple(each)) for rank, each in enumerate(calls)]


def _noise(rank: int, step: int) -> float:
    return random.Random(f"{rank} {step}").expovariate(50)


@pytest.mark.parametrize(
    ("delay", "steps", "share"),
    [
        (lambda rank, _: 0.05 * (rank == 2), 100, 33),
        (lambda rank, step: 0.15 * (rank == 2) + _noise(rank, step) / 10, 100, 60),
        (_noise, 100, None),
        (lambda rank, _: 0.008 * (rank == 2), 100, None),
        (lambda rank, step: 3.0 * (rank == 0 and step % 30 == 0), 100, None),
        (lambda rank, step: 0.1 * (rank == step % 4), 100, None),
        (lambda rank, _: 0.1 * (rank > 1), 100, None),
        (lambda rank, _: 0.05 * (rank == 2), 20, None),
    ],
    ids=["slow", "slow with noise", "noise", "below the threshold", "saves", "in turn", "two alike", "too few"],
)
def test_only_a_steadily_slower_rank_is_named(delay: Delay, steps: int, share: int | None) -> None:
    text = straggler(_recordings(steps, delay), make_ranks(2, 2))
    found = re.match(r"rank 2 on instance 1 is steadily slower: the others wait for it (\d+)% of the time", text)
    assert bool(found) == bool(text)
    assert (found and int(found[1])) == (share and pytest.approx(share, abs=3))


def test_when_nccl_is_called_says_nothing_about_a_rank() -> None:
    assert not straggler(_recordings(100, lambda rank, _: 0.05 * (rank == 2), backend="nccl"), make_ranks(2, 2))
    assert not straggler([], [])


@pytest.mark.parametrize(
    ("cpu", "said"), [(15.0, "it computes more (15.0 s"), (8.0, "it computes no more than they (8.0 s"), (None, "time")]
)
def test_its_cpu_time_says_why(cpu: float | None, said: str) -> None:
    ranks = make_ranks(2, 2)
    for rank in ranks:
        rank.cpu_seconds = cpu if rank.rank == 2 else 9.0
    assert said in straggler(_recordings(100, lambda rank, _: 0.05 * (rank == 2)), ranks)
