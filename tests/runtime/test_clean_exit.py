"""A rank that trained to its end exits 0: without care gloo's threads abort one job in three when Python ends."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest


def test_what_a_program_expects_at_its_end(start: Callable) -> None:
    (ended,) = start("exit_functions.py").wait()
    assert ended.code == 0, ended
    assert ended.stdout == "pool thread exit function "


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "jobs"), [("ddp", 4), pytest.param("deepspeed", 4, marks=pytest.mark.recipe)])
def test_every_rank_of_every_job(start_environment: dict[str, str], strategy: str, jobs: int) -> None:
    """A slice of what the program does by hand: 200 jobs of ddp and 50 of deepspeed."""
    if strategy == "deepspeed" and find_spec("deepspeed") is None:
        pytest.skip("no DeepSpeed")
    program = Path(__file__).parent / "soak" / "exits.py"
    ended = subprocess.run(
        [sys.executable, str(program), f"--{strategy}={jobs}", "--ranks=4"],
        env=start_environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert ended.returncode == 0, ended
    assert re.findall(r"(\w+): .* (\d+) x 0$", ended.stdout, re.MULTILINE) == [(strategy, str(jobs * 4))]
