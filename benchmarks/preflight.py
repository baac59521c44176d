"""The cost of the preflight checks if nothing is wrong: seconds from a launch until the last rank trains, with and
without the checks, in turn; and the seconds that rank 0 spends in the checks with 64 ranks on 8 instances.

The engine launches the ranks, on the kind of instances that `allranks run` chooses by default here. The import of torch
is included in both sides of the first figure, and not in the second.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import medians

from allranks.contract.layout import Layout
from allranks.contract.pytorch import PyTorch
from allranks.history.records import Status
from allranks.history.workspace import Workspace
from allranks.local import engine
from allranks.plan.graph import Graph, Plan, Step

SMALL = Layout(2, 2)
TIMES = 5
MANY = Layout(8, 8)

TRAINING = """
import os, sys, time

from allranks import runtime


def train(ranks):
    with open(os.path.join(sys.argv[1], str(ranks.rank)), "w") as file:
        file.write(repr(time.time()))


runtime.main(train)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="allranks-preflight-") as parent:
        workspace = Workspace(Path(parent))
        training = workspace.root / "train.py"
        training.write_text(TRAINING, encoding="utf-8")
        print("2x2, with and without, in turn ...", file=sys.stderr)
        with_checks, without = medians(
            TIMES,
            lambda: _launch(workspace, training, SMALL, checks=True)[0],
            lambda: _launch(workspace, training, SMALL, checks=False)[0],
        )
        print("8x8, some minutes of importing torch ...", file=sys.stderr)
        many = _launch(workspace, training, MANY, checks=True)[1]
    finish(
        "The checks before the first step",
        [
            Figure("2x2, launch to training, s (peer: without the checks)", with_checks, without),
            Figure("2x2, what the checks add, s", with_checks - without, goal=1.0),
            Figure("8x8, the checks themselves, s", many, goal=5.0),
        ],
    )


def _launch(workspace: Workspace, training: Path, layout: Layout, *, checks: bool) -> tuple[float, float]:
    """Return the seconds until the last rank trains, and the seconds of rank 0 in the checks (0 without them)."""
    with tempfile.TemporaryDirectory(dir=workspace.root) as folder:
        report = Path(folder) / "preflight.json"
        step = Step(
            "train",
            f"{sys.executable} {training} {folder}",
            distribution=PyTorch(layout.process_count_per_instance),
            instance_count=layout.instance_count,
            environment_variables={
                "OMP_NUM_THREADS": "1",
                "ALLRANKS_PREFLIGHT": str(int(checks)),
                "ALLRANKS_PREFLIGHT_REPORT": str(report),
            },
        )
        started = time.time()
        record = engine.run(Plan("preflight", Graph((step,))), workspace, engine.Options(track=False))
        if record.status is not Status.COMPLETED:
            raise RuntimeError(f"the run ended {record.status}: {record.verdict}")
        last_started = max(float((Path(folder) / str(rank)).read_text()) for rank in range(layout.world_size))
        seconds = json.loads(report.read_text())["seconds"] if checks else 0.0
    return last_started - started, seconds


if __name__ == "__main__":
    main()
