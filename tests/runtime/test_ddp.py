"""Training on several ranks is the training of one process with the same global batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from allranks.contract.pytorch import PyTorch


def losses(stdout: str) -> list[float]:
    return [float.fromhex(line.split()[1]) for line in stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process_count", "batch_size"),
    [
        (4, 64),  # 500 samples: the last batch of an epoch has 52
        (3, 83),  # no batch divides by 3, and the last has 2 samples for 3 ranks
    ],
)
def test_loss_curve_is_that_of_one_process(start: Callable, process_count: int, batch_size: int) -> None:
    one = start("train_digits.py", "--batch-size", batch_size)
    several = start("train_digits.py", "--batch-size", batch_size, distribution=PyTorch(process_count))
    ended = [*one.wait(), *several.wait()]
    assert [rank.code for rank in ended] == [0] * (process_count + 1), ended
    expected, found = losses(ended[0].stdout), losses(ended[1].stdout)
    assert len(expected) == len(found) == 100
    assert expected[-1] < expected[0] / 2, "this training learns nothing: it would prove nothing"
    assert max(abs(a - b) / a for a, b in zip(expected, found, strict=True)) < 1e-4
