"""Print the logs of 64 ranks of 100 MB each: peak memory and time of the process.

The logs are those of a completed run in a workspace, so that `--follow` ends by itself. All ranks of a run share one
file through hard links, so that two runs need 200 MB of disk. The logs of the first run have lines of 100 bytes, those
of the second run are a single line without an end. The output is read and counted, and must contain every byte of every
log.

Peer: `tail -n +1` and `tail -n +1 --follow` of the same files, which also print many files with bounded memory, each
after its name. There is no peer for JSON, because no standard tool prints files as JSON. For information, the last
figure is the memory of an `allranks` process that reads no log: memory above it is the cost of the logs.
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
"""Per GB of logs: 50 MB/s."""

BLOCKS = {
    "lines of 100 bytes": b"step 00001 loss 0.123456 ".ljust(99, b".") + b"\n",
    "one line a log": b"step 00001 loss 0.123456 ".ljust(100, b"."),
}
"""The repeated content of a log, by kind of run."""

NO_PROCESS = str(2**22)
"""Greater than every process id on Linux, so that `tail --follow` ends."""

TAILS = {(): (), ("--follow",): ("--follow", f"--pid={NO_PROCESS}")}
"""The options of tail, by those of `allranks logs`."""


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
        ours = _print_logs([ALLRANKS, "logs", run.id, *options, *folder])
        peer = _print_logs(["tail", "-n", "+1", *TAILS[options], *logs]) if options in TAILS else None
        name = " ".join(("allranks logs", *options))
        peer_text = " (peer: tail)" if peer else ""
        figures.append(Figure(f"{name}, {kind}, MB{peer_text}", ours.megabytes, peer and peer.megabytes, GOAL_MB))
        if options != ("--follow",):
            figures.append(
                Figure(
                    f"{name}, {kind}, s a GB{peer_text}",
                    _seconds_per_gb(ours),
                    peer and _seconds_per_gb(peer),
                    GOAL_SECONDS,
                )
            )
    return figures


def _add_run(workspace: Workspace, kind: str, block: bytes) -> RunRecord:
    """Write the logs of a completed run, and add the run to the workspace."""
    run_id = kind.replace(" ", "_")
    folder = workspace.runs / run_id / "train"
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
    run = RunRecord(run_id, "train", "", "train.yml", "loopback", Status.COMPLETED, steps=[step])
    with Store(workspace.database) as store:
        store.add_run(run, "{}")
    return run


def _print_logs(command: Sequence[str]) -> Written:
    """Return the cost of a command that prints all logs. Raise RuntimeError if a part of them is missing."""
    cost = written(command)
    if cost.size < RANKS * SIZE * 0.99:  # JSON encodes the end of a line differently
        raise RuntimeError(f"{list(command)} printed {cost.size} bytes of {RANKS * SIZE}")
    return cost


def _seconds_per_gb(cost: Written) -> float:
    return cost.seconds / (RANKS * SIZE / 1e9)


if __name__ == "__main__":
    main()
