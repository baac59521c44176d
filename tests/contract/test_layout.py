import pytest

from allranks.contract.layout import Layout


def test_a_layout_is_one_process_unless_it_is_told_otherwise() -> None:
    assert Layout().world_size == 1


@pytest.mark.parametrize(("counts", "named"), [((0, 1), "instance_count"), ((2, -1), "process_count_per_instance")])
def test_a_count_below_one_is_refused(counts: tuple[int, int], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Layout(*counts)
