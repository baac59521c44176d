"""Log means over the ranks, and end in one of several ways: finish, fail, evict, or wait and be killed."""

import os
import signal
import sys
from pathlib import Path

import torch

from allranks import runtime
from allranks.contract import report

STEPS = 200
END_AT = 100


def train(ranks: runtime.Ranks) -> None:
    how = sys.argv[1]
    checkpoints = runtime.Checkpoints("checkpoints", ranks, {})
    for step in range(1, STEPS + 1):
        value = torch.tensor(float(step + ranks.rank), requires_grad=True)
        mean = ranks.mean(value)
        with torch.no_grad():
            value.zero_()
        ranks.metrics.log({"mean": mean, "count": 2 * step}, step=step)
        ranks.barrier()
        if step == END_AT and how == "fail":
            raise ValueError("no more")
        if step == END_AT and how == "evict" and not ranks.is_main:
            os.kill(os.getpid(), signal.SIGTERM)
        checkpoints.save_if_due(step)
    if how == "wait":
        while ranks.is_main and len(report.read(Path(os.environ[report.VARIABLE]))[0]) < STEPS:
            pass
        ranks.barrier()
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
