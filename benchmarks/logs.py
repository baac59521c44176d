"""What it takes to print the logs of 64 ranks of 100 MB each: the memory of the process, and its time.

The logs are in a workspace, as those of a run that has ended: `--follow` ends by itself. All ranks of a run share one
file by hard links, so that two runs take 200 MB of disk. The ranks of the first run wrote lines of 100 bytes, those of
the second one line without an end. The output is read and counted, and must hold every byte of every log.

Peer: `tail -n +1` of the same files, and `tail -n +1 --follow`, which also print many files in a bounded memory, with
a name before each; nothing that prints them as JSON comes with a system. The memory of an `allranks` process that reads
no log follows for information: what is above it is the cost of the logs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.figures import Figure, finish
from bench.memory import Written, written

from allranks.runs.records import RankRecord, RunRecord, Status, StepRecord
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

ALLRANKS = str(Path(sys.executable).parent / "allranks")
RANKS = 64
SIZE = 100_000_000
GOAL_MB = 100.0
GOAL_SECONDS = 20.0
"""For a GB of logs: 50 MB/s."""

BLOCKS = {
    "lines of 100 bytes": b"step 00001 loss 0.123456 ".ljust(99, b".") + b"\n",
    "one line a log": b"step 00001 loss 0.123456 ".ljust(100, b"."),
}
"""What a log repeats, by the kind of run."""

NO_PROCESS = str(2**22)
"""The largest number of a process in Linux is one less: `tail --follow` ends, as the run has."""

TAILS = {(): (), ("--follow",): ("--follow", f"--pid={NO_PROCESS}")}
"""The options of tail beside those of `allranks logs`."""


def main() -> None:
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        workspace.make()
        for kind, block in BLOCKS.items():
            figures += _figures(workspace, kind, _add_run(workspace, kind, block))
        idle = written([ALLRANKS, "runs", "--json", "--folder", folder])
    finish(f"Printing the logs of {RANKS} ranks", [*figures, Figure("without logs: allranks runs, MB", idle.megabytes)])


def _figures(workspace: Workspace, kind: str, run: RunRecord) -> list[Figure]:
    figures = []
    logs = [rank.log for rank in run.steps[0].ranks]
    folder = ("--folder", str(workspace.root))
    for options in ((), ("--follow",), ("--json",)):
        ours = _all_written([ALLRANKS, "logs", run.id, *options, *folder])
        peer = _all_written(["tail", "-n", "+1", *TAILS[options], *logs]) if options in TAILS else None
        name = " ".join(("allranks logs", *options))
        beside = " (peer: tail)" if peer else ""
        figures.append(Figure(f"{name}, {kind}, MB{beside}", ours.megabytes, peer and peer.megabytes, GOAL_MB))
        if options != ("--follow",):
            figures.append(Figure(f"{name}, {kind}, s a GB{beside}", _pace(ours), peer and _pace(peer), GOAL_SECONDS))
    return figures


def _add_run(workspace: Workspace, kind: str, block: bytes) -> RunRecord:
    """Write the logs of a run that has ended, and add it to the workspace."""
    identity = kind.replace(" ", "_")
    folder = workspace.runs / identity / "train"
    folder.mkdir(parents=True)
    logs = [folder / f"std_log_process_{rank:02}.txt" for rank in range(RANKS)]
    with logs[0].open("wb") as log:
        for _ in range(100):
            log.write(block * (SIZE // 100 // len(block)))
    for path in logs[1:]:
        os.link(logs[0], path)
    ranks = [
        RankRecord(rank, 0, rank, "localhost", Status.COMPLETED, 1.0, 2.0, 0, log=str(log))
        for rank, log in enumerate(logs)
    ]
    step = StepRecord("train", "", "command", "pytorch", 1, RANKS, status=Status.COMPLETED, ranks=ranks)
    run = RunRecord(identity, "train", "", "train.yml", "loopback", Status.COMPLETED, steps=[step])
    with Store(workspace.database) as store:
        store.add_run(run, "{}")
    return run


def _all_written(command: Sequence[str]) -> Written:
    """Return what a command that prints all the logs took. Raise RuntimeError where something is missing."""
    found = written(command)
    if found.size < RANKS * SIZE * 0.99:  # in JSON the end of a line is another text
        raise RuntimeError(f"{list(command)} printed {found.size} bytes of {RANKS * SIZE}")
    return found


def _pace(found: Written) -> float:
    """Return seconds for a GB of logs."""
    return found.seconds / (RANKS * SIZE / 1e9)


if __name__ == "__main__":
    main()
