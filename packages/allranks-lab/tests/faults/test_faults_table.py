"""Every cell of docs/faults.md: the verdict names the right rank and cause, soon, and no process is left."""

import os
from collections.abc import Callable

import pytest
from fault_cells import CELLS, FAULTS, STACKS, Cell, random_cell
from fault_runs import PROJECT, Outcome, run_cell, run_program, run_together
from program_faults import PROGRAM_FAULTS, ProgramFault

from allranks.workspace import Workspace

QUICK = {
    "DDP": ("full disk",),
    "torchrun": ("SIGKILL", "SIGKILL of the launcher"),
    "MPI": ("SIGKILL of mpirun",),
}
"""The cells that run in each `make test`; `make test-faults` runs all. test_hangs.py has two more."""

ALL = "ALLRANKS_ALL_FAULTS" in os.environ
CHOSEN = [cell for cell in CELLS if ALL or cell.fault.name in QUICK.get(cell.stack, ())]


QUICK_PROGRAMS = ("a rank has one batch fewer",)
CHOSEN_PROGRAMS = [fault for fault in PROGRAM_FAULTS if ALL or fault.what in QUICK_PROGRAMS]

LAUNCHES = int(os.environ.get("ALLRANKS_FAULT_LAUNCHES", "0"))


@pytest.fixture(scope="session")
def together(tmp_path_factory: pytest.TempPathFactory, rack_works: bool) -> Callable[[Cell], Outcome]:
    """Return the outcome of a cell that breaks itself, of one run with all of those of its stack."""
    known: dict[Cell, Outcome] = {}

    def outcome(cell: Cell) -> Outcome:
        if cell not in known:
            cells = [each for each in CHOSEN if each.stack == cell.stack and each.breaks_itself]
            workspace = Workspace(tmp_path_factory.mktemp("stack"))
            known.update(run_together(cells, workspace, "rack" if rack_works else "loopback"))
        return known[cell]

    return outcome


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(cell, id=cell.name, marks=pytest.mark.xdist_group(f"faults of {cell.stack}"))
        for cell in CHOSEN
        if cell.breaks_itself
    ],
)
def test_the_verdict_on_a_script_that_breaks_itself(cell: Cell, together: Callable[[Cell], Outcome]) -> None:
    _skip_without(cell)
    _check(cell, together(cell))


@pytest.mark.slow
@pytest.mark.parametrize("cell", [cell for cell in CHOSEN if not cell.breaks_itself], ids=lambda cell: cell.name)
def test_the_verdict_on_a_fault_from_outside(cell: Cell, workspace: Workspace, rack_works: bool) -> None:
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
    _skip_without(cell)
    kind = "rack" if rack_works else "loopback"
    _check(cell, run_cell(cell, workspace, kind) if isinstance(cell, Cell) else run_program(cell, workspace, kind))


def _skip_without(cell: Cell | ProgramFault) -> None:
    if stack := cell.launch.missing(PROJECT):
        pytest.skip(f"no {stack.name} here: {stack.install}")


def _check(cell: Cell | ProgramFault, outcome: Outcome) -> None:
    assert outcome.right, f"{cell}: {outcome.found}"
    assert outcome.left == 0


def test_the_page_has_every_fault_and_stack() -> None:
    lines = (PROJECT / "packages/allranks-lab/docs/faults.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert rows[0] == ["fault", *STACKS]
    assert [row[0] for row in rows[2 : 2 + len(FAULTS)]] == [fault.name for fault in FAULTS]
    names = [fault.name.replace("|", "&#124;") for fault in PROGRAM_FAULTS]
    assert [row[0] for row in rows[-len(names) :]] == names
