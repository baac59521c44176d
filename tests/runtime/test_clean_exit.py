"""A rank that trained to its end exits 0: without care gloo's threads abort one job in three when Python ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from allranks.contract.pytorch import PyTorch


def test_what_a_program_expects_at_its_end(start: Callable) -> None:
    (ended,) = start("exit_functions.py").wait()
    assert ended.code == 0, ended
    assert ended.stdout == "pool thread exit function "


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_jobs_of_four_ranks(start: Callable) -> None:
    codes = []
    for _ in range(20):
        codes += [rank.code for rank in start("sum_ranks.py", distribution=PyTorch(4)).wait()]
    assert codes == [0] * 80
