"""What the recordings of torch's Flight Recorder say about ranks that hang or have failed."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allranks.history.records import Verdict
from allranks.verdict import collectives
from allranks.verdict.collectives import Call, Recording
from allranks.verdict.folder import verdicts
from allranks.verdict.hangs import of_recordings, with_mismatch
from run_records import make_ranks

ENTRY = {
    "record_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": 1, "is_p2p": False,
    "profiling_name": "gloo:all_reduce", "input_sizes": [[4, 4]], "input_dtypes": ["Float"], "state": "scheduled",
    "time_created_ns": 1_700_000_000_500_000_000,
    "frames": [
        {"name": "all_reduce", "filename": "/venv/lib/python3.11/site-packages/torch/distributed/c10d.py", "line": 2},
        {"name": "<module>", "filename": "/code/train.py", "line": 12},
    ],
}  # fmt: skip
CALL = Call("0", 1, "gloo", "all_reduce", ((4, 4),), ("float32",), 1_700_000_000.5, "train.py:12")


def _recordings(*calls: list[Call]) -> list[Recording]:
    return [Recording(rank, tuple(each)) for rank, each in enumerate(calls)]


@pytest.mark.parametrize("dump", [pickle.dumps, lambda dump: json.dumps(dump).encode()])
def test_a_recording_is_read(tmp_path: Path, dump: Any) -> None:
    later = {**ENTRY, "record_id": 1, "collective_seq_id": 2, "state": "completed", "input_sizes": []}
    entries = [later, ENTRY, {**ENTRY, "is_p2p": True}]
    (tmp_path / "rank_3").write_bytes(dump({"version": "2.10", "entries": entries}))
    recording = collectives.read(tmp_path / "rank_3", 3)
    assert recording == Recording(3, (CALL, replace(CALL, number=2, shapes=(), is_done=True)))
    assert str(CALL) == "all_reduce of 4x4 float32"


class _Harmful:
    def __reduce__(self) -> Any:
        return os.mkdir, ("harm",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        pickle.dumps({"entries": [ENTRY]})[:-20],
        pickle.dumps([1]),
        pickle.dumps({"entries": [{**ENTRY, "process_group": None}]}),
        pickle.dumps({"entries": [], "more": _Harmful()}),
    ],
)
def test_what_is_no_recording_is_left_out(tmp_path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rank_0").write_bytes(data)
    assert collectives.read(tmp_path / "rank_0", 0) is None
    assert os.listdir(tmp_path) == ["rank_0"], "nothing was executed"


GATHER = replace(CALL, name="gather")


@pytest.mark.parametrize(
    ("calls", "rank", "reason"),
    [
        (
            (CALL, CALL, replace(CALL, name="broadcast", where="train.py:14")),
            2,
            "it called broadcast of 4x4 float32 (train.py:14), and ranks 0 and 1 called all_reduce of 4x4 float32 (tr",
        ),
        ((CALL, replace(CALL, shapes=((5,),))), 1, "it called all_reduce of 5 float32"),
        ((CALL, replace(CALL, dtypes=("int64",))), 1, "it called all_reduce of 4x4 int64"),
        ((replace(CALL, name="barrier", shapes=()), CALL, CALL), 0, "it called barrier (train.py:12), and"),
        ((CALL, replace(CALL, shapes=((16,),))), None, "the same number of elements"),
        ((GATHER, replace(GATHER, shapes=((5,),))), None, "which ranks may call with different shapes"),
        ((CALL, replace(CALL, group="1", name="barrier")), None, "of another process group"),
    ],
)
def test_the_rank_that_calls_another_collective(calls: tuple[Call, ...], rank: int | None, reason: str) -> None:
    verdict = of_recordings("train", make_ranks(1, 3), _recordings(*([call] for call in calls)))
    assert verdict is None if rank is None else (verdict is not None and reason in verdict.reason), verdict
    if verdict is not None:
        assert (verdict.rank, verdict.where, verdict.code) == (rank, calls[rank or 0].where, "collective-mismatch")


@pytest.mark.parametrize("changed", [0, 1])
def test_of_two_ranks_the_one_that_has_called_something_else_before(changed: int) -> None:
    later = replace(CALL, number=2)
    calls = [[CALL, later], [CALL, later]]
    calls[changed][1] = replace(later, dtypes=("float64",))
    verdict = of_recordings("train", make_ranks(1, 2), _recordings(*calls))
    assert verdict is not None
    assert verdict.rank == changed


def test_the_rank_that_has_called_fewer() -> None:
    second = replace(CALL, number=2, where="train.py:20")
    verdict = of_recordings("train", make_ranks(1, 3), _recordings([CALL, second], [CALL], [CALL, second]))
    assert verdict is not None
    assert (verdict.rank, verdict.where) == (1, "train.py:12")
    waiting = "ranks 0 and 2 wait for it in all_reduce of 4x4 float32 (train.py:20)"
    assert verdict.reason == f"its last collective is all_reduce of 4x4 float32 (train.py:12), and {waiting}"
    done = replace(second, is_done=True)
    assert of_recordings("train", make_ranks(1, 2), _recordings([CALL, done], [CALL])) is None


ABORTED = Verdict("train", "ended by SIGABRT", rank=0, tail=("op.preamble.length <= op.nbytes. 20 vs 64. Received",))


@pytest.mark.parametrize(
    ("verdict", "calls", "expected"),
    [
        (Verdict("train", "RuntimeError: Timed out waiting 8000ms", rank=0), ([CALL], [GATHER]), 1),
        (Verdict("train", "it ended with exit code 0", rank=0, exit_code=0), ([CALL], [GATHER]), 1),
        (Verdict("train", "ValueError: bad shard", rank=0), ([CALL], [GATHER]), 0),
        (ABORTED, ([], [CALL]), 0),
    ],
)
def test_a_mismatch_explains_only_its_consequences(verdict: Verdict, calls: Any, expected: int) -> None:
    found = with_mismatch(verdict, make_ranks(1, 2), _recordings(*calls))
    assert found.rank == expected
    if verdict is ABORTED:
        assert found.reason.endswith("it received 20 bytes, and expected 64")
        assert found.consequences == ("rank 1: in all_reduce of 4x4 float32 (train.py:12)",)


def _nccl(count: int, *, done: int, name: str = "all_reduce") -> bytes:
    """Return a dump of a rank that has called `count` collectives, of which `done` have ended."""
    calls = [
        {**ENTRY, "record_id": number, "collective_seq_id": number, "profiling_name": f"nccl:{name}",
         "state": "completed" if number <= done else "started"}
        for number in range(1, count + 1)
    ]  # fmt: skip
    return pickle.dumps({"version": "2.10", "entries": calls})


WATCHDOG = (
    "[rank0]:[E1126 05:00:00 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: Wor"
)


@pytest.mark.parametrize("log", ["", WATCHDOG])
def test_dumps_of_nccl_name_the_rank_that_the_others_waited_for(tmp_path: Path, log: str) -> None:
    """One dump is truncated, and a rank runs ahead of the others."""
    folder = tmp_path / "job" / "outputs" / "flight_recorder"
    folder.mkdir(parents=True)
    for rank, (count, done) in enumerate([(7, 5), (6, 5), (5, 5)]):
        (folder / f"rank_{rank}").write_bytes(_nccl(count, done=done))
    (folder / "nccl_trace_rank_3").write_bytes(_nccl(5, done=5)[:100])
    if log:
        (tmp_path / "job" / "user_logs").mkdir()
        (tmp_path / "job" / "user_logs" / "std_log_process_0.txt").write_text(log + "\n")
    notes: list[str] = []
    (verdict,) = verdicts(tmp_path, notes.append)
    assert (verdict.step, verdict.rank, verdict.code) == ("job", 2, "collective-timeout")
    assert "ranks 0 and 1 wait for it in all_reduce of 4x4 float32 (train.py:12)" in verdict.reason
    assert notes == [
        f"{folder / 'nccl_trace_rank_3'} is not read: it is truncated, or no dump of torch's Flight Recorder"
    ]


@pytest.mark.parametrize("states", [((6, 6), (6, 6)), ((7, 5), (6, 5))], ids=["ended", "all wait in the sixth"])
def test_dumps_of_nccl_that_blame_no_rank(states: tuple[tuple[int, int], ...], tmp_path: Path) -> None:
    for rank, (count, done) in enumerate(states):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(_nccl(count, done=done))
    assert verdicts(tmp_path) == []


def test_workers_of_a_launcher_have_its_log() -> None:
    recordings = [Recording(2, (CALL,), 1), Recording(3, (GATHER,), 1)]
    verdict = of_recordings("train", make_ranks(2, 1), recordings)
    assert verdict is not None
    assert (verdict.rank, verdict.worker, verdict.instance_rank) == (1, 3, 1)
