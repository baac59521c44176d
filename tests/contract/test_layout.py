import pytest
from hypothesis import given
from hypothesis import strategies as st

from allranks.contract.layout import Layout

counts = st.integers(1, 40)


def test_a_layout_is_one_process_unless_it_is_told_otherwise() -> None:
    assert Layout().world_size == 1


@given(counts, counts)
def test_every_rank_is_on_one_instance_in_order(instance_count: int, process_count: int) -> None:
    layout = Layout(instance_count, process_count)
    placed = [(instance, rank) for instance in range(instance_count) for rank in layout.ranks(instance)]

    assert [rank for _, rank in placed] == list(range(layout.world_size))
    assert all(layout.instance_rank(rank) == instance for instance, rank in placed)
    assert all(layout.ranks(instance)[layout.local_rank(rank)] == rank for instance, rank in placed)


@pytest.mark.parametrize(("counts", "named"), [((0, 1), "instance_count"), ((2, -1), "process_count_per_instance")])
def test_a_count_below_one_is_refused(counts: tuple[int, int], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Layout(*counts)


@pytest.mark.parametrize("rank", [-1, 4])
def test_a_rank_that_is_not_there_is_refused(rank: int) -> None:
    layout = Layout(2, 2)
    for ask in (layout.instance_rank, layout.local_rank):
        with pytest.raises(ValueError, match="from 0 to 3"):
            ask(rank)


@pytest.mark.parametrize("instance_rank", [-1, 2])
def test_an_instance_that_is_not_there_is_refused(instance_rank: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        Layout(2, 2).ranks(instance_rank)
