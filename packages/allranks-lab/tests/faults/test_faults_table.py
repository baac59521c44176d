"""Every cell of docs/faults.md: the verdict names the right rank and cause, soon, and no process is left."""

from __future__ import annotations

import os

import pytest
from fault_cells import CELLS, FAULTS, STACKS, Cell, random_cell
from fault_runs import PROJECT, Outcome, run_cell, run_program
from program_faults import PROGRAM_FAULTS, ProgramFault

from allranks.history.workspace import Workspace

QUICK = {
    "DDP": ("SIGKILL of the agent", "full disk"),
    "torchrun": ("SIGKILL", "SIGKILL of the launcher"),
    "MPI": ("SIGKILL of mpirun", "SIGKILL of the engine"),
}
"""The cells that run in each `make test`; `make test-faults` runs all. test_hangs.py has two more."""

ALL = "ALLRANKS_ALL_FAULTS" in os.environ
CHOSEN = [cell for cell in CELLS if ALL or cell.fault.name in QUICK.get(cell.stack, ())]


QUICK_PROGRAMS = ("a rank has one batch fewer",)
CHOSEN_PROGRAMS = [fault for fault in PROGRAM_FAULTS if ALL or fault.what in QUICK_PROGRAMS]

LAUNCHES = int(os.environ.get("ALLRANKS_FAULT_LAUNCHES", "0"))


@pytest.mark.slow
@pytest.mark.parametrize("cell", CHOSEN, ids=lambda cell: cell.name)
def test_the_verdict_on_a_fault(cell: Cell, workspace: Workspace, rack_works: bool) -> None:
    _require_right(cell, workspace, rack_works)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(LAUNCHES))
def test_the_verdict_on_a_random_fault(seed: int, workspace: Workspace, rack_works: bool) -> None:
    _require_right(random_cell(seed), workspace, rack_works)


@pytest.mark.slow
@pytest.mark.parametrize("fault", CHOSEN_PROGRAMS, ids=lambda fault: fault.name)
def test_the_verdict_on_a_program_that_breaks_itself(
    fault: ProgramFault, workspace: Workspace, rack_works: bool
) -> None:
    _require_right(fault, workspace, rack_works)


def _require_right(cell: Cell | ProgramFault, workspace: Workspace, rack_works: bool) -> None:
    if stack := cell.launch.missing(PROJECT):
        pytest.skip(f"no {stack.name} here: {stack.install}")
    kind = "rack" if rack_works else "loopback"
    outcome: Outcome = (run_cell if isinstance(cell, Cell) else run_program)(cell, workspace, kind)  # type: ignore[arg-type]
    assert outcome.right, f"{cell}: {outcome.found}"
    assert outcome.left == 0


def test_the_page_has_every_fault_and_stack() -> None:
    lines = (PROJECT / "packages/allranks-lab/docs/faults.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert rows[0] == ["fault", *STACKS]
    assert [row[0] for row in rows[2 : 2 + len(FAULTS)]] == [fault.name for fault in FAULTS]
    names = [fault.name.replace("|", "&#124;") for fault in PROGRAM_FAULTS]
    assert [row[0] for row in rows[-len(names) :]] == names
