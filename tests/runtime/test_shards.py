"""Shards that are read from front to back: every sample once in an epoch, at any number of ranks and workers."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allranks.errors import InputError
from allranks.runtime.data.data_loader import DataLoader
from allranks.runtime.data.shards import ShardedDataset, ShardSampler
from allranks.runtime.ranks.ranks import Ranks

Place: TypeAlias = Callable[[int, int], Ranks]


class Shards:
    """Shards whose samples are (shard, number), and how often each was opened."""

    def __init__(self, lengths: list[int], window: int = 1, **options: object) -> None:
        self.opened: list[tuple[int, int]] = []
        self.actual = list(lengths)
        self.dataset = ShardedDataset(lengths, self.read, window=window, **options)  # type: ignore[arg-type]

    def read(self, shard: int, start: int) -> Iterator[tuple[int, int]]:
        self.opened.append((shard, start))
        return ((shard, number) for number in range(start, self.actual[shard]))

    @property
    def samples(self) -> list[tuple[int, int]]:
        return [(shard, number) for shard, length in enumerate(self.actual) for number in range(length)]


lengths = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(sum)
layouts = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 6)).map(
    lambda drawn: {"world_size": drawn[0], "workers": drawn[1], "batch_size": drawn[0] + drawn[2]}
)


def make(place: Place, shards: Shards, layout: dict[str, int], **options: bool) -> list[ShardSampler]:
    """The sampler of each rank."""
    world_size = layout["world_size"]
    samplers = []
    for rank in range(world_size):
        sampler = ShardSampler(shards.dataset, place(rank, world_size), batch_size=layout["batch_size"], **options)
        sampler.num_workers = layout["workers"]
        samplers.append(sampler)
    return samplers


def used(samplers: list[ShardSampler], steps: int | None = None) -> list[list[int]]:
    """The samples of each step, over all ranks, to the end of the epoch or for so many steps."""
    iterators = [sampler.epoch_batches() for sampler in samplers]
    result: list[list[int]] = []
    for _ in range(steps) if steps is not None else count():
        batches = [next(iterator, None) for iterator in iterators]
        if None in batches:
            assert not any(batches), "a rank makes more steps than another"
            return result
        result.append(
            [
                sample
                for sampler, batch in zip(samplers, batches, strict=True)
                if sampler.weight
                for sample in batch or ()
            ]
        )
    return result


@given(lengths=lengths, layout=layouts, window=st.integers(1, 5), shuffle=st.booleans())
def test_every_sample_once_in_equal_steps(
    place: Place, lengths: list[int], layout: dict[str, int], window: int, shuffle: bool
) -> None:
    samplers = make(place, Shards(lengths, window), layout, shuffle=shuffle)
    for _ in range(2):
        steps = used(samplers)
        assert len(steps) == len(samplers[0])
        assert [len(step) for step in steps[:-1]] == [layout["batch_size"]] * (len(steps) - 1)
        assert sorted(sample for step in steps for sample in step) == list(range(sum(lengths)))


@given(lengths=lengths, layouts=st.tuples(layouts, layouts, layouts), window=st.integers(1, 5), data=st.data())
def test_every_sample_once_where_the_layout_changes_within_the_epoch(
    place: Place, lengths: list[int], layouts: tuple[dict[str, int], ...], window: int, data: st.DataObject
) -> None:
    seen: list[int] = []
    state = None
    shards = Shards(lengths, window)
    for number, layout in enumerate(layouts):
        samplers = make(place, shards, layout)
        if state is not None:
            for sampler in samplers:
                sampler.load_state_dict(state)
        if samplers[0].epoch:  # a run that ended with the epoch left nothing
            break
        stop = data.draw(st.integers(0, len(samplers[0]))) if number < len(layouts) - 1 else None
        seen += [sample for step in used(samplers, stop) for sample in step]
        states = [sampler.state_dict() for sampler in samplers]
        assert all(other == states[0] for other in states), "any rank's state is the state"
        state = states[0]
    assert sorted(seen) == list(range(sum(lengths)))


@given(lengths=lengths, layout=layouts, data=st.data())
def test_the_same_layout_goes_on_with_the_same_batches(
    place: Place, lengths: list[int], layout: dict[str, int], data: st.DataObject
) -> None:
    shards = Shards(lengths)
    expected = used(make(place, shards, layout))
    stop = data.draw(st.integers(0, len(expected) - 1))
    before = make(place, shards, layout)
    used(before, stop)
    after = make(place, shards, layout)
    for sampler in after:
        sampler.load_state_dict(before[0].state_dict())
    assert used(after) == expected[stop:]


@given(lengths=lengths, layout=layouts)
def test_incomplete_batches_can_be_dropped(place: Place, lengths: list[int], layout: dict[str, int]) -> None:
    shards = Shards(lengths)
    if sum(lengths) < layout["batch_size"]:
        with pytest.raises(InputError, match="drop_last"):
            make(place, shards, layout, drop_last=True)
        return
    steps = used(make(place, shards, layout, drop_last=True))
    assert {len(step) for step in steps} == {layout["batch_size"]}
    assert len(steps) == sum(lengths) // layout["batch_size"]


def test_an_incomplete_batch_that_was_to_be_dropped_is_used_after_all(place: Place) -> None:
    shards, layout = Shards([5, 3]), {"world_size": 2, "workers": 1, "batch_size": 3}
    before = make(place, shards, layout, drop_last=True)
    seen = used(before, 1)
    after = make(place, shards, layout)
    for sampler in after:
        sampler.load_state_dict(before[0].state_dict())
    assert sorted(sample for step in [*seen, *used(after)] for sample in step) == list(range(8))


def test_another_epoch_and_seed_have_another_order(place: Place) -> None:
    shards = Shards([7] * 8, window=4)
    orders = set()
    for seed in (0, 1):
        sampler = ShardSampler(shards.dataset, place(0, 1), batch_size=56, seed=seed)
        orders |= {tuple(*sampler.epoch_batches()) for _ in range(2)}
    assert len(orders) == 4


def test_a_worker_opens_a_shard_once(place: Place) -> None:
    """Also where the samples of a window are used in another order than the file's."""
    shards = Shards([10, 10, 10, 10], window=4)
    sampler = ShardSampler(shards.dataset, place(0, 1), batch_size=3)
    batches = list(DataLoader(shards.dataset, sampler, collate_fn=list))
    assert sorted(sample for batch in batches for sample in batch) == shards.samples
    assert [sample for batch in batches for sample in batch] != shards.samples
    assert sorted(shards.opened) == [(shard, 0) for shard in range(4)]


def test_workers_read_their_own_parts(place: Place) -> None:
    shards = Shards([10, 3, 0, 12], window=4, transform=lambda sample: [*sample, "transformed"])
    sampler = ShardSampler(shards.dataset, place(0, 1), batch_size=3)
    loader = DataLoader(shards.dataset, sampler, num_workers=2, collate_fn=list)
    for _ in range(2):
        found = sorted((sample[0], sample[1]) for batch in loader for sample in batch)
        assert found == shards.samples
    assert loader.epoch == 2


@pytest.mark.parametrize(("actual", "message"), [(4, "4 samples"), (6, "more than 5 samples")])
def test_a_length_that_is_wrong(place: Place, actual: int, message: str) -> None:
    shards = Shards([3, 5])
    shards.actual[1] = actual
    sampler = ShardSampler(shards.dataset, place(0, 1), batch_size=2)
    with pytest.raises(InputError, match=message) as error:
        list(DataLoader(shards.dataset, sampler, num_workers=1, collate_fn=list))
    assert error.value.problems[0].where == "data set, shard 1"


@pytest.mark.parametrize("changed", ["lengths", "window", "seed"])
def test_another_order_is_refused(place: Place, changed: str) -> None:
    saved = ShardSampler(Shards([4, 4], 2).dataset, place(0, 1), batch_size=2).state_dict()
    other = Shards([5, 3] if changed == "lengths" else [4, 4], 3 if changed == "window" else 2)
    sampler = ShardSampler(other.dataset, place(0, 1), batch_size=2, seed=int(changed == "seed"))
    with pytest.raises(InputError, match="order of the samples"):
        sampler.load_state_dict(saved)


def test_no_samples() -> None:
    with pytest.raises(InputError, match="at least one sample"):
        Shards([0, 0])
    with pytest.raises(InputError, match="window"):
        Shards([1], window=0)
