"""What ranks exchange, in one job of three ranks."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from allranks.contract.pytorch import PyTorch

pytestmark = pytest.mark.slow  # they look at the same job


@pytest.fixture(scope="module")
def found(start_module: Callable, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of three ranks wrote."""
    folder = tmp_path_factory.mktemp("tools")
    ended = start_module("tools.py", folder, distribution=PyTorch(3)).wait()
    assert [rank.code for rank in ended] == [0] * 3, ended
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(3)]


def test_gather_has_the_rows_of_all_ranks(found: list[dict[str, Any]]) -> None:
    for rank in found:
        gathered = rank["gather"]
        assert gathered["torch.float64"] == gathered["torch.bfloat16"] == [[1, 1], [2, 2], [2, 2]]
        assert gathered["torch.int64"] == [[1, 1], [2, 2], [2, 2]]
        assert gathered["torch.bool"] == [[True, True]] * 3
        assert gathered["scalars"] == [0, 1, 2]
        assert gathered["nothing"] == [0, 3]
        assert gathered["gradient"] is False
        assert "float32 rows of shape (3,) on rank 1, and float32 rows of shape (2,) on rank 0" in gathered["shape"]
        assert "int32 rows of shape () on rank 2" in gathered["dtype"]


def test_reduce(found: list[dict[str, Any]]) -> None:
    expected = {
        "number": [3.0, 1.0, 1.5, 0.5],
        "count": [6, 2.0, 3, 1],
        "float32": [["float32", 6, -6], ["float32", 2, -2], ["float32", 3, -1], ["float32", 1, -3]],
        "bfloat16": [["bfloat16", 768, 6], ["bfloat16", 256, 2], ["bfloat16", 256, 3], ["bfloat16", 256, 1]],
        "uint8": [["int64", 600, 6], ["float32", 200, 2], ["uint8", 200, 3], ["uint8", 200, 1]],
        "bool": [["int64", 3, 1], ["float32", 1, pytest.approx(1 / 3)], ["bool", True, True], ["bool", True, False]],
    }
    for rank in found:
        for name, results in expected.items():
            reduced = [rank["reduce"][f"{name} {operation}"] for operation in ("sum", "mean", "max", "min")]
            assert reduced == results, name
        assert "'median'" in rank["reduce"]["unknown"]


def test_broadcast_has_the_object_of_rank_0(found: list[dict[str, Any]]) -> None:
    assert [rank["broadcast"] for rank in found] == [0, 0, 0]
