from collections.abc import Callable
from typing import TypeAlias

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from allranks.errors import InputError
from allranks.runtime.data.sampler import ResumableSampler
from allranks.runtime.ranks.ranks import Ranks

Place: TypeAlias = Callable[[int, int], Ranks]


def epoch(sampler: ResumableSampler) -> list[tuple[list[int], float]]:
    """The rest of an epoch: each batch that this rank is given, and its weight."""
    return [(batch, sampler.weight) for batch in sampler.epoch_batches()]


shapes = st.tuples(st.integers(1, 60), st.integers(1, 5), st.integers(0, 20), st.booleans(), st.booleans()).map(
    lambda drawn: {
        "length": drawn[0] + drawn[1] + drawn[2],
        "world_size": drawn[1],
        "batch_size": drawn[1] + drawn[2],
        "shuffle": drawn[3],
        "drop_last": drawn[4],
    }
)


def make(place: Place, shape: dict[str, int], rank: int, world_size: int | None = None) -> ResumableSampler:
    options = {
        name: shape[name] for name in ("batch_size", "shuffle", "drop_last", "per_device_batch_size") if name in shape
    }
    return ResumableSampler(shape["length"], place(rank, world_size or shape["world_size"]), **options)  # type: ignore[arg-type]


@given(shape=shapes)
def test_ranks_share_the_batches_of_one_process(place: Place, shape: dict[str, int]) -> None:
    one = make(place, shape, 0, 1)
    ranks = [make(place, shape, rank) for rank in range(shape["world_size"])]
    for _ in range(2):
        expected = [batch for batch, _ in epoch(one)]
        shares = [epoch(rank) for rank in ranks]
        assert {len(share) for share in shares} == {len(expected)} == {len(one)}
        for number, batch in enumerate(expected):
            given_out = [share[number] for share in shares]
            assert [sample for part, weight in given_out if weight for sample in part] == batch
            # The average over the ranks of weight x mean is the mean over the batch.
            assert all(part for part, _ in given_out)
            for part, weight in given_out:
                assert weight == 0 or weight / len(ranks) == pytest.approx(len(part) / len(batch))


@given(shape=shapes, per_device=st.integers(1, 8))
def test_a_batch_that_is_too_large_for_the_ranks_comes_in_parts(
    place: Place, shape: dict[str, int], per_device: int
) -> None:
    expected = [batch for batch, _ in epoch(make(place, shape, 0, 1))]
    limited = {**shape, "per_device_batch_size": per_device}
    ranks = [make(place, limited, rank) for rank in range(shape["world_size"])]
    passes = ranks[0].passes_per_batch
    shares = [epoch(rank) for rank in ranks]
    assert [len(share) for share in shares] == [len(expected) * passes] * len(ranks)
    assert all(1 <= len(part) <= per_device for share in shares for part, _ in share)
    for number, batch in enumerate(expected):
        given_out = [part for share in shares for part in share[number * passes : (number + 1) * passes]]
        assert [sample for part, weight in given_out if weight for sample in part] == batch
        # The average over ranks and passes of weight x mean is the mean over the batch.
        for part, weight in given_out:
            assert weight == 0 or weight / len(given_out) == pytest.approx(len(part) / len(batch))


def test_a_batch_of_which_a_part_is_missing_begins_again(place: Place) -> None:
    options = {"batch_size": 6, "shuffle": False, "per_device_batch_size": 2}
    sampler = ResumableSampler(12, place(0, 1), **options)  # type: ignore[arg-type]
    received = [next(batches) for batches in [sampler.epoch_batches()] for _ in range(5)]
    assert received == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    assert sampler.batches_left == 1
    resumed = ResumableSampler(12, place(0, 2), **options)  # type: ignore[arg-type]
    resumed.load_state_dict(sampler.state_dict())
    assert epoch(resumed) == [([6], pytest.approx(2 / 3)), ([7, 8], pytest.approx(4 / 3))]


@given(shape=shapes, data=st.data())
def test_goes_on_where_it_stopped_at_any_world_size(place: Place, shape: dict[str, int], data: st.DataObject) -> None:
    batches = make(place, shape, 0, 1)
    everything = [batch for _ in range(2) for batch, _ in epoch(batches)]
    stop = data.draw(st.integers(0, len(everything) - 1))
    before = make(place, shape, 0)
    for _ in range(stop // len(before)):
        epoch(before)
    if stop % len(before):
        for number, _ in enumerate(before.epoch_batches(), start=1):
            if number == stop % len(before):
                break

    world_size = data.draw(st.integers(1, shape["batch_size"]))
    after = [make(place, shape, rank, world_size) for rank in range(world_size)]
    for rank in after:
        rank.load_state_dict(before.state_dict())
    rest: list[list[int]] = []
    while after[0].epoch < 2:
        shares = [epoch(rank) for rank in after]
        rest += [
            [sample for share in shares for sample in share[number][0] if share[number][1]]
            for number in range(len(shares[0]))
        ]
    assert rest == everything[stop:]


def test_every_epoch_and_seed_has_its_order(place: Place) -> None:
    orders = []
    for seed in (0, 1, 2**32):
        sampler = ResumableSampler(50, place(0, 1), batch_size=50, seed=seed)
        orders += [tuple(epoch(sampler)[0][0]) for _ in range(3)]
    assert len(set(orders)) == 9
    assert all(sorted(order) == list(range(50)) for order in orders)


@pytest.mark.parametrize(("drop_last", "left"), [(False, [2, 1, 0]), (True, [1, 0])])
def test_the_batches_left_of_an_epoch_are_counted(place: Place, drop_last: bool, left: list[int]) -> None:
    sampler = ResumableSampler(10, place(0, 1), batch_size=4, drop_last=drop_last)
    for _ in range(2):
        assert sampler.batches_left == len(left)
        assert [sampler.batches_left for _ in sampler.epoch_batches()] == left


def test_batches_that_workers_drew_ahead_are_not_counted(place: Place) -> None:
    sampler = ResumableSampler(40, place(0, 1), batch_size=4, shuffle=False)
    loader = DataLoader(TensorDataset(torch.arange(40)), batch_sampler=sampler, num_workers=2)
    for number, _ in enumerate(sampler.epoch_batches(loader), start=1):
        if number == 3:
            state = sampler.state_dict()
            break
    resumed = ResumableSampler(40, place(0, 1), batch_size=4, shuffle=False)
    resumed.load_state_dict(state)
    assert next(iter(resumed)) == [12, 13, 14, 15]


@pytest.mark.parametrize("ask", [lambda sampler: sampler.state_dict(), lambda sampler: next(iter(sampler))])
def test_batches_that_nobody_counted_are_refused(place: Place, ask: Callable[[ResumableSampler], object]) -> None:
    sampler = ResumableSampler(8, place(0, 1), batch_size=4)
    for _ in sampler:
        pass
    with pytest.raises(RuntimeError, match="epoch_batches"):
        ask(sampler)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0, "batch_size": 4}, "no samples"),
        ({"length": 9, "batch_size": 3}, "at least 4"),
        ({"length": 9, "batch_size": 12, "drop_last": True}, "at most 9"),
    ],
)
def test_wrong_sizes(place: Place, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ResumableSampler(options.pop("length"), place(0, 4), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("changed", [{"length": 9}, {"seed": 1}, {"shuffle": False}])
def test_another_order_is_refused(place: Place, changed: dict[str, int]) -> None:
    saved = ResumableSampler(8, place(0, 1), batch_size=4).state_dict()
    options: dict[str, int] = {"length": 8, "batch_size": 4, **changed}
    other = ResumableSampler(options.pop("length"), place(0, 1), **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=next(iter(changed))):
        other.load_state_dict(saved)
