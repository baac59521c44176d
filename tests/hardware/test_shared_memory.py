from pathlib import Path

import pytest

from allranks.hardware.shared_memory import MIB, found, mib, needed, problem


@pytest.mark.parametrize(
    ("ranks", "gpus", "expected"),
    [(1, False, 64), (4, False, 256), (1, True, 64), (2, True, 1024), (8, True, 1024), (32, False, 2048)],
)
def test_what_ranks_need(ranks: int, gpus: bool, expected: int) -> None:
    assert needed(ranks, gpus=gpus) == expected * MIB


@pytest.mark.parametrize(("size", "ranks", "gpus"), [(16, 1, False), (64, 2, False), (1023, 8, True)])
def test_too_little(size: int, ranks: int, gpus: bool) -> None:
    trouble = problem(size * MIB, ranks, gpus=gpus)
    assert trouble is not None
    assert trouble.where == "resources.shm_size"
    assert f"{size} MiB for {ranks} rank" in trouble.found
    assert f"{needed(ranks, gpus=gpus) // MIB} MiB" in trouble.expected
    assert "2g" in trouble.fix


@pytest.mark.parametrize(("size", "ranks", "gpus"), [(64, 1, False), (128, 2, False), (1024, 8, True), (2048, 8, True)])
def test_enough(size: int, ranks: int, gpus: bool) -> None:
    assert problem(size * MIB, ranks, gpus=gpus) is None


def test_what_this_machine_has(tmp_path: Path) -> None:
    assert found(tmp_path) > 0
    assert found(tmp_path / "nothing") == 0


@pytest.mark.parametrize(("size", "text"), [(MIB, "1 MiB"), (3 * MIB // 2, "1.5 MiB"), (1024 * MIB + 1, "1024 MiB")])
def test_a_size_for_people(size: int, text: str) -> None:
    assert mib(size) == text
