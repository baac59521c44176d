"""Training on several ranks is the training of one process with the same global batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from allranks.contract.pytorch import PyTorch


def losses(stdout: str) -> list[float]:
    return [float.fromhex(line.split()[1]) for line in stdout.splitlines()]


@pytest.mark.slow
def test_loss_curve_is_that_of_one_process(start: Callable) -> None:
    """No batch divides by 3, and the last of an epoch has 2 samples for 3 ranks."""
    one = start("train_digits.py", "--batch-size", 83)
    several = start("train_digits.py", "--batch-size", 83, distribution=PyTorch(3))
    ended = [*one.wait(), *several.wait()]
    assert [rank.code for rank in ended] == [0] * 4, ended
    expected, found = losses(ended[0].stdout), losses(ended[1].stdout)
    assert len(expected) == len(found) == 100
    assert expected[-1] < expected[0] / 2, "this training learns nothing: it would prove nothing"
    assert max(abs(a - b) / a for a, b in zip(expected, found, strict=True)) < 1e-4
