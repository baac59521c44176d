"""From a launch to the end of the last rank's first all-reduce, and the memory of a rank: allranks and its peers.

All launch the same training files, those of benchmarks/launches/ranks, in turn. A rank imports what it needs, makes an
all-reduce, and writes down the time at its end. A layout is instances x processes per instance; each rank has one
OpenMP thread. Memory is the mean of the ranks' proportional share (PSS) while all are alive.

    ours      from the call of the engine's run(plan), in a process that has already imported the engine, like a
              notebook or the command; in the rack and on loopback; without MLflow, as the peers have none
    torchrun  from the start of its agents, one per instance, side by side on loopback; it includes the agents' import
              of torch, because a user of torchrun waits for it too
    mpirun    from its start; all ranks on this machine
    TorchX    `torchx run --scheduler local_cwd dist.ddp`, for information

The memory of the process that ranks are forked from is shared by them, and so is counted in their shares.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from bench import peers
from bench.figures import Figure, finish
from launches.launch import Launcher, Reached, in_turn, launch, layout_text
from launches.mpirun import mpirun
from launches.ours import by_engine
from launches.torchrun import torchrun, torchx

from allranks.contract.layout import Layout
from allranks.contract.mpi import Mpi
from allranks.local.instances.supervisor import INSTANCE_KINDS, UnfitError
from allranks.workspace import Workspace

TIMES = 5
GOALS = {Layout(1, 2): 0.55, Layout(2, 2): 0.36, Layout(2, 8): 0.16}
"""Of the time, over torchrun's."""

MEMORY_GOAL = 0.4
MPI_GOALS = {Layout(2, 2): 0.6, Layout(2, 8): 0.25}
LIBRARIES = {"with_deepspeed.py": "a DeepSpeed script", "with_transformers.py": "a transformers script"}
LIBRARIES_LAYOUT = Layout(2, 2)
LIBRARIES_GOAL = 0.4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("pytorch", "mpi", "libraries"), help="measure these figures alone")
    only = parser.parse_args().only
    with tempfile.TemporaryDirectory(prefix="allranks-launch-") as folder:
        workspace = Workspace(Path(folder))
        parts = {"pytorch": _pytorch, "mpi": _mpi, "libraries": _libraries}
        figures = [figure for name, part in parts.items() if only in (None, name) for figure in part(workspace)]
    finish("From a launch to the end of the last rank's first all-reduce", figures)


def _pytorch(workspace: Workspace) -> Iterator[Figure]:
    python = peers.python(peers.TORCHX)
    for layout, goal in GOALS.items():
        launchers: list[Launcher] = [torchrun, *(by_engine(workspace, kind) for kind in INSTANCE_KINDS)]
        launchers += [torchx(python)] if python else []
        peer, *ours = _measured(workspace, "pytorch.py", layout, launchers)
        for kind, reached in zip(INSTANCE_KINDS, ours, strict=False):
            name = f"{layout_text(layout)}, {kind}"
            yield from _figures(name, reached, peer, "torchrun", goal, MEMORY_GOAL)
        if python:
            name = f"{layout_text(layout)}, TorchX local_cwd, s (peer: torchrun)"
            yield Figure(name, ours[-1].seconds, peer.seconds)


def _mpi(workspace: Workspace) -> Iterator[Figure]:
    for layout, goal in MPI_GOALS.items():
        launchers = [mpirun, *(by_engine(workspace, kind, Mpi) for kind in INSTANCE_KINDS)]
        peer, *ours = _measured(workspace, "mpi.py", layout, launchers)
        for kind, reached in zip(INSTANCE_KINDS, ours, strict=True):
            yield from _figures(f"MPI, {layout_text(layout)}, {kind}", reached, peer, "mpirun", goal)


def _libraries(workspace: Workspace) -> Iterator[Figure]:
    for file, text in LIBRARIES.items():
        launchers = [torchrun, *(by_engine(workspace, kind) for kind in INSTANCE_KINDS)]
        peer, *ours = _measured(workspace, file, LIBRARIES_LAYOUT, launchers)
        for kind, reached in zip(INSTANCE_KINDS, ours, strict=True):
            name = f"{text}, {layout_text(LIBRARIES_LAYOUT)}, {kind}"
            yield from _figures(name, reached, peer, "torchrun", LIBRARIES_GOAL)


def _measured(workspace: Workspace, file: str, layout: Layout, launchers: Sequence[Launcher]) -> list[Reached]:
    print(f"{file}, {layout_text(layout)} ...", file=sys.stderr)
    launches: list[Callable[[], Reached]] = [
        partial(launch, launcher, file, layout, workspace.root) for launcher in launchers
    ]
    return in_turn(TIMES, launches)


def _figures(
    name: str, ours: Reached, peer: Reached, of: str, goal: float, memory_goal: float | None = None
) -> Iterator[Figure]:
    yield Figure(f"{name}, s (peer: {of})", ours.seconds, peer.seconds, goal, of="ratio")
    yield Figure(f"{name}, MB a rank (peer: {of})", ours.memory, peer.memory, memory_goal, of="ratio")


if __name__ == "__main__":
    try:
        main()
    except UnfitError as error:
        sys.exit(f"this machine lacks a kind of instances: {error}")
