"""The worker of torchrun or accelerate that failed first, by the logs of the launchers."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.contract import report
from allranks.runs.formatting import cause
from allranks.runs.records import RankRecord, Status
from allranks.verdict import judge

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
