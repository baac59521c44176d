"""Run a step whose ranks print: python printing.py RANKS BYTES FOLDER.

Print the time at which the run ended, and by how many MB (10^6 bytes) the memory of this process, the engine, grew
beyond what it was after a run of the same step that printed almost nothing.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from bench.memory import current, peak, reset_peak

from allranks.contract.pytorch import PyTorch
from allranks.history.records import Status
from allranks.history.workspace import Workspace
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan import digest
from allranks.plan.graph import Code, Graph, Plan, Step

CODE = Path(__file__).resolve().parents[1] / "ranks"


def main(ranks: int, size: int, folder: Path) -> None:
    workspace = Workspace(folder)
    _print(workspace, ranks, 100, folder)
    reset_peak()
    before = current()
    _print(workspace, ranks, size, folder)
    print(time.time(), peak() - before)


def _print(workspace: Workspace, ranks: int, size: int, folder: Path) -> None:
    times = folder / "times"
    times.mkdir(parents=True, exist_ok=True)
    code = Code(str(CODE), digest.of_path(CODE))
    step = Step("print", f"python print_lines.py {size} {times}", code=code, distribution=PyTorch(ranks))
    record = run(Plan("print", Graph((step,))), workspace, Options(track=False, force_rerun=True))
    if record.status is not Status.COMPLETED:
        sys.exit(f"the run ended {record.status}: {record.verdict}")
    for rank in record.steps[0].ranks:
        lines = size // 100
        if Path(rank.log).stat().st_size != 100 * lines:
            sys.exit(f"{rank.log} does not have {lines} lines")
        Path(rank.log).unlink()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
