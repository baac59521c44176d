"""Writes docs/faults.md: which faults of which stacks get a right verdict, after how many seconds.

    python tools/make_faults.py --results FILE [--seconds 500] [--workers 2] [--again | --logs] [PART OF A NAME...]

Runs the cells of tests/faults/fault_cells.py that are not in FILE yet, as many as begin within those seconds,
and saves each outcome there. With names only those; with --again also those that are, with --logs the logs of those
that are and whose verdict over the logs is wrong. The page is written from all outcomes in FILE.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PACKAGE / "tests/faults"), str(PACKAGE.parents[1] / "tests")]

from fault_cells import CELLS, FAULTS, STACKS, Cell  # noqa: E402
from fault_runs import NOTHING, STALL, Outcome, run_cell, run_program, with_own_logs  # noqa: E402
from program_faults import PROGRAM_FAULTS, ProgramFault  # noqa: E402

from allranks.text import shortened  # noqa: E402
from allranks.workspace import Workspace  # noqa: E402

ALL: Sequence[Cell | ProgramFault] = (*CELLS, *PROGRAM_FAULTS)
PAGE = PACKAGE / "docs" / "faults.md"
FAILURE = 5.0
HANG = STALL + 5.0
"""Seconds in which a failed step and one that hangs should have ended."""

HEAD = """# Verdicts on faults

Made by `python tools/make_faults.py`, which runs a small training on each stack, four ranks on two emulated instances,
and breaks one of its ranks (two of them for a missing module) in the third step. The scripts are in
`tests/faults/scripts` and know nothing of allranks. Every cell is a test: `make test-faults`.

A number says that the verdict names the right rank and the right cause, and how many seconds after the fault the step
had ended; of that, `--stall {stall:g}` where nothing ends by itself, as after `sys.exit` in one rank of plain MPI, or
an order mismatch under Horovod and MPI. **wrong** is a wrong verdict. A dash says that the stack has no such fault.
Horovod, MPI and TensorFlow report a mismatch as one between ranks: any of them may be named. No process was left in any
cell, unless the cell says how many.

{summary}

"""


LOGS = """
## Over the logs alone

Where other ranks tell of a fault, these are the logs of the same training without an engine that ends them: each
writes until it loses a connection or gives up waiting, after some seconds instead of its minutes. **-** also stands
where a process of the local engine was killed, which Azure ML does not have, and where a hang leaves the same logs as
with DDP. **silent**: no process has written anything after the fault, so that there is nothing to judge.

An eviction is right if the ranks of the instance are named, or the instance, with both causes of such an end: killed,
or evicted; without grace also SIGKILL, which mpirun reports. A partition is right if no rank is blamed (no message
arrives, or mpirun has lost its daemon on an instance), or if the rank from which the others got no heartbeats is named,
with all possible causes: killed, evicted, stopped or cut off. A mismatch of which all ranks tell the same, that they
waited in vain for each other, is right if that line is named with both causes: a mismatch, or instances that are not
connected. Of a bad master every rank tells, so that any of them may be named.

"""

PROGRAMS = """
## Faults of single programs

Programs that break themselves in other ways, and know nothing of allranks either: they are in
`tests/faults/programs`. The verdict is right if it names the rank and the cause that the table
`program_faults.py` beside them expects. Where a shell hides the failure, the step completes, as on Azure ML, and a note
tells of it.

{right} are right; processes left: {left}.

| program | right | the verdict |
| --- | --- | --- |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--logs", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.cell:
        earlier = _saved(arguments.results).get(arguments.cell) if arguments.logs else None
        _save(next(cell for cell in ALL if cell.name == arguments.cell), arguments.results, earlier)
        return
    outcomes = _saved(arguments.results)
    chosen = [cell for cell in ALL if not arguments.names or any(name in cell.name for name in arguments.names)]
    if arguments.logs:
        chosen = [cell for cell in chosen if cell.name in outcomes and outcomes[cell.name].logs_right is False]
    else:
        chosen = [cell for cell in chosen if arguments.again or cell.name not in outcomes]
    due = time.monotonic() + arguments.seconds
    command = [sys.executable, __file__, "--results", str(arguments.results), *["--logs"] * arguments.logs, "--cell"]

    def start(cell: Cell | ProgramFault) -> None:
        if time.monotonic() < due and not cell.launch.missing(PACKAGE.parents[1]):
            # A process of its own: what it leaves is its own.
            subprocess.run([*command, cell.name], check=False)

    with ThreadPoolExecutor(arguments.workers) as workers:
        list(workers.map(start, chosen))
    PAGE.write_text(page(_saved(arguments.results)), encoding="utf-8")


def _save(cell: Cell | ProgramFault, results: Path, earlier: Outcome | None) -> None:
    """Run a cell, and append its outcome to a file. earlier: of which only the logs are made again"""
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        workspace = Workspace(Path(folder))
        if isinstance(cell, ProgramFault):
            outcome = run_program(cell, workspace)
        else:
            outcome = earlier or run_cell(cell, workspace)
            if cell.is_told_by_others:
                outcome = with_own_logs(outcome, cell, workspace)
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"cell": cell.name, **asdict(outcome)}) + "\n")
    print(f"{cell.name}: {'' if outcome.right else 'WRONG '}{outcome}", flush=True)


def _saved(file: Path) -> dict[str, Outcome]:
    """Return the outcomes in a file; the last one of each cell."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    rows = [json.loads(line) for line in lines]
    return {row.pop("cell"): Outcome(**row) for row in rows}


def page(outcomes: Mapping[str, Outcome]) -> str:
    """Return the text of the page."""
    done = [(cell, outcomes[cell.name]) for cell in CELLS if cell.name in outcomes]
    right = _share(each.right for _, each in done)
    by_logs = _share(each.logs_right for _, each in done if each.logs_right is not None)
    silent = sum(each.by_logs == NOTHING for _, each in done)
    failed = _share(each.seconds <= FAILURE for cell, each in done if not cell.hangs)
    hung = _share(each.seconds <= HANG for cell, each in done if cell.hangs)
    summary = f"""\
- Right in rank and cause: {right}; the table has {len(CELLS)} cells.
- Over the logs alone, as by `allranks why FOLDER`: {by_logs}; in {silent} more cells nothing was written.
- Failed steps that had ended within {FAILURE:g} s: {failed}.
- Hangs that had ended within {HANG:g} s: {hung}.
- Processes left: {sum(each.left for _, each in done)}."""
    text = HEAD.format(stall=STALL, summary=summary)
    text += _table({cell: _shown(each) for cell, each in done})
    logs = {
        cell: "silent" if each.by_logs == NOTHING else {True: "yes", False: "**wrong**", None: "-"}[each.logs_right]
        for cell, each in done
    }
    text += LOGS + _table(logs) + _programs(outcomes)
    wrong = [(cell, each) for cell, each in done if not each.right]
    if wrong:
        text += "\n## What the wrong verdicts said\n\n| cell | the verdict |\n| --- | --- |\n"
        text += "".join(f"| {cell.name} | {each.found.replace('|', ' ')} |\n" for cell, each in wrong)
    return text


def _programs(outcomes: Mapping[str, Outcome]) -> str:
    found = [(fault, outcomes[fault.name]) for fault in PROGRAM_FAULTS if fault.name in outcomes]
    left = sum(each.left for _, each in found)
    text = PROGRAMS.format(right=_share(each.right for _, each in found), left=left)
    for fault, each in found:
        verdict = shortened(re.sub(r"/\S*/(?=\w+\.py)|\[/__w\S*/", "", each.found)).replace("|", "\\|")
        right = "yes" if each.right else "**no**"
        text += f"| {fault.name.replace('|', '&#124;')} | {right} | {verdict} |\n"
    return text


def _table(cells: Mapping[Cell, str]) -> str:
    texts = {(cell.fault.name, cell.stack): text for cell, text in cells.items()}
    possible = {(cell.fault.name, cell.stack) for cell in CELLS}
    rows: list[Sequence[str]] = [["fault", *STACKS], ["---"] * (len(STACKS) + 1)]
    for fault in FAULTS:
        places = [(fault.name, stack) for stack in STACKS]
        rows.append([fault.name, *(texts.get(place, "not run" if place in possible else "-") for place in places)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _shown(outcome: Outcome) -> str:
    text = f"{outcome.seconds:.1f}" if outcome.right else "**wrong**"
    return text if not outcome.left else f"{text}, {outcome.left} left"


def _share(answers: Iterable[bool | None]) -> str:
    given = list(answers)
    return f"{sum(given)} of {len(given)} ({100 * sum(given) // max(len(given), 1)} %)"


if __name__ == "__main__":
    main()
