"""Ranks without Flight Recorder report when they wait for the others: the slow one is named."""

from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.history.records import Status
from allranks.plan import digest
from allranks.plan.graph import Code, Step
from allranks_command import write

SCRIPT = """
import os, sys, time
from allranks.contract import report

late = 0.3 * (os.environ["RANK"] == "1")
report.append(report.Finished(arrivals=tuple((step, step + late) for step in range(200))))
time.sleep(float(sys.argv[1]))
"""
SHARE = "the others wait for it 30% of the time"


@pytest.mark.parametrize(("seconds", "limit", "status"), [(0, None, Status.COMPLETED), (1000, 3.0, Status.FAILED)])
def test_the_slow_rank_is_named(tmp_path: Path, run_steps, seconds: int, limit: float | None, status: Status) -> None:
    folder = write(tmp_path, "code/train.py", SCRIPT).parent
    code, command = Code(str(folder), digest.of_path(folder)), f"python train.py {seconds}"
    run = run_steps(Step("train", command, code=code, distribution=PyTorch(1), instance_count=2, timeout=limit))
    record = run.step("train")
    assert record.status is status
    assert record.straggler.startswith(f"rank 1 on instance 1 is steadily slower: {SHARE}")
    assert record.straggler in record.notes
    assert record.verdict is None or record.straggler in record.verdict.consequences
    assert SHARE in Path(run.page).read_text()
