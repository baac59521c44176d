"""A rank that trained to its end exits 0: without care gloo's threads abort one job in three when Python ends."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

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


@pytest.mark.slow
def test_jobs_of_two_ranks_under_ddp_and_deepspeed(start_environment: dict[str, str]) -> None:
    """A slice of what the program does by hand: 200 and 50 jobs."""
    jobs = {"ddp": 10, "deepspeed": 4 if find_spec("deepspeed") else 0}
    program = Path(__file__).parent / "soak" / "exits.py"
    ended = subprocess.run(
        [sys.executable, str(program), *(f"--{name}={count}" for name, count in jobs.items())],
        env=start_environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ended.returncode == 0, ended
    assert re.findall(r"(\w+): .* (\d+) x 0$", ended.stdout, re.MULTILINE) == [
        (name, str(2 * count)) for name, count in jobs.items() if count
    ]
