"""Run steps of `true` with allranks: python ours.py SHAPE COUNT FOLDER KIND.

Print the seconds of the run, and the kind of instances that it ran on.
"""

import sys
import time
from pathlib import Path

from allranks.history.records import Status
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace


def main(shape: str, count: int, folder: Path, kind: str) -> None:
    steps = tuple(
        Step(f"step_{number}", "true", after=(f"step_{number - 1}",) if number and shape == "chain" else ())
        for number in range(count)
    )
    plan = Plan(shape, Graph(steps))
    started = time.perf_counter()
    record = run(plan, Workspace(folder), Options(instances=kind, force_rerun=True))
    seconds = time.perf_counter() - started
    if record.status is not Status.COMPLETED or len(record.steps) != count:
        sys.exit(f"the run ended {record.status}: {record.verdict}")
    print(seconds, record.instances)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
