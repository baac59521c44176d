"""A rank that trained to its end exits 0, after what a program expects at its end."""

from collections.abc import Callable

import pytest


@pytest.mark.slow
def test_what_a_program_expects_at_its_end(start: Callable) -> None:
    (ended,) = start("exit_functions.py").wait()
    assert ended.code == 0, ended
    assert ended.stdout == "pool thread exit function "
