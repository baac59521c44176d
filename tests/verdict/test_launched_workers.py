"""The worker of torchrun or accelerate that failed first, by the logs of the launchers."""

from pathlib import Path

import pytest

from allranks.contract import report
from allranks.history.formatting import cause
from allranks.history.records import RankRecord, Status
from allranks.verdict import judge
from allranks.verdict.collectives import Call, Recording
from allranks.verdict.folder import of_waiting

OWN = """\
[rank{0}]: Traceback (most recent call last):
[rank{0}]:   File "/code/train.py", line 6, in <module>
[rank{0}]:     step()
[rank{0}]: {1}
"""
TABLE = """\
Traceback (most recent call last):
  File "/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-26_02:14:{1}
  host      : node-0
  rank      : {0} (local_rank: 0)
  exitcode  : 1 (pid: 5) 
  error_file: <N/A>
============================================================
"""  # noqa: W291
LOST = "RuntimeError: [pair.cc:553] Connection closed by peer [10.77.0.11]:29391"
BAD = "RuntimeError: bad shard 2"
ROW = TABLE[TABLE.index("  time") : TABLE.index("====", TABLE.index("  time"))].replace(": 1 (pid", ": {2} (pid")
OTHERS = "[1]:\n" + ROW.format(1, 40, -9) + "[2]:\n" + ROW.format(2, 40, -15)
EXITED = TABLE.format(0, 40).replace("  <NO_OTHER_FAILURES>\n", "[1]:\n" + ROW.format(1, 40, 9))
KILLED = TABLE.format(0, 40).replace("  <NO_OTHER_FAILURES>\n", OTHERS)
FORCED = "Unable to shutdown process 6 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL\n"
PLAIN = 'Traceback (most recent call last):\n  File "/code/train.py", line 1, in <module>\nValueError: no data\n'


@pytest.mark.parametrize(
    ("logs", "rank", "worker", "reason"),
    [
        ([OWN.format(1, LOST) + TABLE.format(1, 40), OWN.format(2, BAD) + TABLE.format(2, 41)], 1, 2, BAD),
        ([OWN.format(0, BAD) + TABLE.format(0, 40), OWN.format(2, LOST) + TABLE.format(2, 40)], 0, 0, BAD),
        (["", OWN.format(3, LOST) + OWN.format(2, BAD) + TABLE.format(3, 41)], 1, 2, BAD),
        ([PLAIN + TABLE.format(0, 41), PLAIN + TABLE.format(2, 40)], 1, 2, "ValueError: no data"),
        (["killed\n" + TABLE[TABLE.index("Root") :].format(0, 40), ""], 0, 0, "exit code 1"),
        (["no table\n", "none\n"], 0, None, "exit code 1"),
        ([OWN.format(0, LOST) + KILLED], 0, 1, "ended by SIGKILL"),
        ([OWN.format(0, BAD) + KILLED], 0, 0, BAD),
        ([OWN.format(0, LOST) + FORCED + KILLED], 0, 0, LOST),
        ([OWN.format(0, LOST) + EXITED, OWN.format(2, LOST) + TABLE.format(2, 39)], 0, 1, "exit code 9"),
        ([OWN.format(0, LOST) + OWN.format(1, BAD) + EXITED], 0, 1, BAD),
    ],
)
def test_the_cause_and_not_its_consequence(
    tmp_path: Path, logs: list[str], rank: int, worker: int | None, reason: str
) -> None:
    ranks = []
    for number, text in enumerate(logs):
        log = tmp_path / f"{number}.txt"
        log.write_text(text)
        ranks.append(
            RankRecord(number, number, 0, f"node-{number}", Status.FAILED, None, 2e9 + number, 1, log=str(log))
        )
    verdict = judge.of_ranks("train", ranks, {})
    assert verdict is not None
    assert (verdict.rank, verdict.worker, verdict.reason) == (rank, None if worker == rank else worker, reason)
    if worker is not None:
        assert cause(verdict).startswith(f"rank {worker} on instance {rank}")
    if reason == BAD:
        assert verdict.tail[1].strip() == 'File "/code/train.py", line 6, in <module>'


@pytest.mark.parametrize(
    ("status", "rank", "reason"),
    [(Status.FAILED, 1, "ended by SIGKILL"), (Status.CANCELED, 0, LOST)],
    ids=["from outside", "by the engine"],
)
def test_workers_that_lose_each_other_whose_launcher_was_killed(
    tmp_path: Path, status: Status, rank: int, reason: str
) -> None:
    ranks, reports = [], {}
    for number, signal in enumerate(("SIGTERM", "SIGKILL")):
        log, reports[number] = tmp_path / f"{number}.txt", tmp_path / f"{number}.jsonl"
        log.write_text("".join(OWN.format(worker, LOST) for worker in (2 * number, 2 * number + 1)))
        for worker in (2 * number, 2 * number + 1):
            failure = report.Failure("RuntimeError", LOST.partition(": ")[2], OWN.format(worker, LOST), rank=worker)
            report.append(failure, {report.VARIABLE: str(reports[number])})
        ranks.append(RankRecord(number, number, 0, "", Status.FAILED, None, 2e9 + number, None, signal, log=str(log)))
    ranks[1].status = status
    verdict = judge.of_ranks("train", ranks, reports)
    assert verdict is not None
    assert (verdict.rank, verdict.worker, verdict.reason) == (rank, None, reason)


def test_a_worker_that_ended_early_and_said_nothing(tmp_path: Path) -> None:
    """Its launcher tells of those alone that failed; it has called fewer collectives than they."""
    ranks = [
        RankRecord(rank, rank, 0, "", Status.FAILED, 0.0, 9.0, 1, log=str(tmp_path / str(rank))) for rank in (0, 1)
    ]
    frames = '  File "/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 8, in all_reduce\n'
    lost = OWN.replace("step()\n", f"step()\n[rank{{0}}]: {frames}")
    Path(ranks[0].log).write_text(lost.format(0, LOST) + lost.format(1, LOST) + TABLE.format(0, 40))
    Path(ranks[1].log).write_text(lost.format(2, LOST) + TABLE.format(2, 41))
    verdict = judge.of_ranks("train", ranks, {})
    assert verdict is not None
    calls = [Call("0", number, "gloo", "all_reduce", where="train.py:6") for number in (1, 2)]
    recordings = [Recording(rank, tuple(calls[: 1 if rank == 3 else 2]), rank // 2) for rank in range(4)]
    early = of_waiting(verdict, ranks, recordings)
    assert (early.rank, early.worker) == (1, 3)
    reason = (
        "its last collective is all_reduce (train.py:6), and ranks 0, 1 and 2 wait for it in all_reduce (train.py:6)"
    )
    assert early.reason == reason
    assert of_waiting(verdict, ranks, recordings[:3]).rank is None
