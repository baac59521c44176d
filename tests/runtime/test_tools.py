"""What ranks exchange and decide together, in one job of three ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.runtime.ranks.ranks import Ranks
from allranks.runtime.training.early_stopping import EarlyStopping
from allranks.runtime.training.profiler import Profiler

slow = pytest.mark.slow
pytestmark = pytest.mark.xdist_group("tools")  # they look at the same job


@pytest.fixture(scope="module")
def found(start_module: Callable, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of three ranks wrote."""
    folder = tmp_path_factory.mktemp("tools")
    ended = start_module("tools.py", folder, distribution=PyTorch(3)).wait()
    assert [rank.code for rank in ended] == [0] * 3, ended
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(3)]


@slow
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


@slow
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


@slow
def test_broadcast_has_the_object_of_rank_0(found: list[dict[str, Any]]) -> None:
    assert [rank["broadcast"] for rank in found] == [0, 0, 0]


@slow
def test_all_ranks_stop_together(found: list[dict[str, Any]]) -> None:
    assert [rank["stopping"] for rank in found] == [[False, False, False, True]] * 3


@slow
def test_all_ranks_find_the_batch_size_of_the_smallest_memory(found: list[dict[str, Any]]) -> None:
    for rank in found:
        sizes = rank["batch_size"]
        assert (sizes["any"], sizes["multiple"], sizes["bounded"]) == (37, 32, 20)
        assert sizes["same random state"]
        assert sizes["tried"] == found[0]["batch_size"]["tried"]
        assert "per_device_train_batch_size: a step with 38 does not fit" in sizes["none"]
        assert "must match" in sizes["other"]


@slow
def test_one_rank_records_the_active_steps(found: list[dict[str, Any]]) -> None:
    assert found[0]["profile"] == ["rank_1.pt.trace.json.gz", "rank_1.txt"]
    assert found[1]["profile"] == [2, True]


def test_early_stopping_goes_on_after_a_resume(alone: Ranks) -> None:
    before = EarlyStopping(alone, patience=2, mode="max")
    assert [before.update(metric) for metric in (0.5, 0.6, math.nan)] == [False] * 3
    assert (before.best, before.improved) == (0.6, False)
    after = EarlyStopping(alone, patience=2, mode="max")
    after.load_state_dict(before.state_dict())
    assert not after.stopped
    assert after.update(0.6)
    assert after.stopped
    with pytest.raises(ValueError, match="mode max, not min"):
        EarlyStopping(alone, patience=2).load_state_dict(before.state_dict())


def test_a_training_that_is_too_short_to_be_profiled(
    alone: Ranks, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Profiler(alone, wait=3, folder=tmp_path) as profiler:
        profiler.step()
    assert "recorded no profile" in capfd.readouterr().err
    with Profiler(alone, wait=0, warm_up=1, active=9, folder=tmp_path) as profiler:
        for _ in range(3):
            profiler.step()
    assert len(list(tmp_path.iterdir())) == 2, "what was recorded until the end is written"


def test_a_profiler_that_is_off(alone: Ranks, tmp_path: Path) -> None:
    with Profiler(alone, wait=0, warm_up=0, active=1, folder=tmp_path, enabled=False) as profiler:
        for _ in range(3):
            profiler.step()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda ranks: EarlyStopping(ranks, patience=0), "patience: 0"),
        (lambda ranks: EarlyStopping(ranks, patience=1, mode="most"), "min or max"),
        (lambda ranks: EarlyStopping(ranks, patience=1, min_delta=-1.0), "min_delta"),
        (lambda ranks: Profiler(ranks, active=0), "active: 0"),
        (lambda ranks: Profiler(ranks, on_ranks=[3]), "on_ranks: 3, with 2 ranks"),
    ],
)
def test_wrong_arguments(place: Callable, make: Callable[[Ranks], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(place(0, 2))
