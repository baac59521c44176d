"""Runs every launch in every layout on both kinds of instances, and writes docs/stacks.md of what came of it.

    python packages/allranks-lab/tools/make_stacks.py [PART OF A LAUNCH'S NAME...]

With names only those rows are made anew. Ends with 1 where a launch failed.
"""

import sys
import tempfile
import time
from pathlib import Path

import psutil

from allranks.contract.layout import Layout
from allranks.workspace import Workspace
from allranks_lab.stacks.launches import LAUNCHES, LAYOUTS, Launch, run_trial

PROJECT = Path(__file__).resolve().parents[3]
TABLE = PROJECT / "packages/allranks-lab/docs/stacks.md"
KINDS = ("rack", "loopback")

HEAD = """# Launches that work

Made by `python packages/allranks-lab/tools/make_stacks.py`, which starts each launch with real processes on emulated
instances. A yes says: all ranks are distinct, the world size and the local ranks are right, the stack's own all-reduce
is correct, every rank ended with exit code 0, and nothing was left running. A dash says that there is no such layout:
an instance has one TensorFlow worker, and parameter servers need two.

The layouts are instances x processes on each. In each cell: in the rack, on loopback.

"""


def main(names: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="stacks-", ignore_cleanup_errors=True) as folder:
        return _try_all(names, Workspace(Path(folder)))


def _try_all(names: list[str], workspace: Workspace) -> int:
    rows, failed = _written(), False
    for launch in LAUNCHES:
        if names and not any(name.lower() in launch.name.lower() for name in names):
            continue
        if stack := launch.missing(PROJECT):
            rows[launch.name] = [f"not here: `{stack.install}`"] * len(LAYOUTS)
            print(f"{launch.name}: no {stack.name}: {stack.install}", flush=True)
            continue
        cells = []
        for layout in LAYOUTS:
            if layout not in launch.layouts:
                cells.append("-")
                continue
            answers = [_works(launch, layout, kind, workspace) for kind in KINDS]
            failed = failed or not all(answers)
            cells.append(", ".join("yes" if answer else "**no**" for answer in answers))
        rows[launch.name] = cells
    head = ["launch", *(f"{one.instance_count}x{one.process_count_per_instance}" for one in LAYOUTS)]
    lines = [head, ["---"] * len(head), *([one.name, *rows[one.name]] for one in LAUNCHES if one.name in rows)]
    TABLE.write_text(HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines), encoding="utf-8")
    return int(failed)


def _written() -> dict[str, list[str]]:
    """The cells of each launch in the table as it is."""
    if not TABLE.exists():
        return {}
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = [line.strip("| ").split(" | ") for line in lines[2:]]
    return {name: cells for name, *cells in rows}


def _works(launch: Launch, layout: Layout, kind: str, workspace: Workspace) -> bool:
    started = time.monotonic()
    wrong = run_trial(launch, layout, kind, workspace, PROJECT)
    if not wrong and (left := psutil.Process().children(recursive=True)):
        wrong = f"processes are left: {left}"
    where = f"{layout.instance_count}x{layout.process_count_per_instance} {kind}"
    print(f"{launch.name}, {where}: {wrong or 'yes'} ({time.monotonic() - started:.1f} s)", flush=True)
    return not wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
