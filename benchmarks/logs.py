"""The logs of ranks that print 100 MB each: while they print, and when the logs of 64 ranks are shown.

8 ranks print lines of 100 bytes with `print`, unbuffered, through the engine, on the instances that `allranks run`
chooses by default, and through `torchrun --tee 3` with log files, whose console output goes to /dev/null. The time is
from the first line of any rank until the run has ended, so until the logs are complete; the next figure is the time
until the last rank has printed its last line. The growth of the engine's memory is beyond that of a run of the same
step that printed almost nothing.

The logs that are shown are those of a completed run in a workspace, so that `--follow` ends by itself. All ranks of a
run share one file through hard links, so that two runs need 200 MB of disk. The logs of the first run have lines of 100
bytes, those of the second run are a single line without an end. The output is read and counted, and must contain every
byte of every log.

Peer: `tail -n +1` and `tail -n +1 --follow` of the same files, which also print many files with bounded memory, each
after its name. There is no peer for JSON, because no standard tool prints files as JSON. For information, the last
figure is the memory of an `allranks` process that reads no log: memory above it is the cost of the logs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, finish
from bench.memory import Written, written
from bench.timing import environment, run

from allranks.history.records import RankRecord, RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks.history.workspace import Workspace

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


PRINTING = 8
"""Ranks that print at the same time."""

TIMES = 3
GROWTH_GOAL_MB = 50.0
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Printed:
    """A run whose ranks printed.

    seconds: from the first line until the run had ended
    printing: from the first line until the last one
    growth:  of the memory of the engine, in MB; 0 for a peer
    """

    seconds: float
    printing: float
    growth: float = 0.0


def main() -> None:
    figures = _printing_figures()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        workspace.make()
        for kind, block in BLOCKS.items():
            figures += _figures(workspace, kind, _add_run(workspace, kind, block))
        idle = written([ALLRANKS, "runs", "--json", "--folder", folder])
    finish("The logs of ranks", [*figures, Figure("without logs: allranks runs, MB", idle.megabytes)])


def _printing_figures() -> list[Figure]:
    rounds = [(_printed(_by_engine), _printed(_by_torchrun)) for _ in range(TIMES)]
    ours, peer = ([each[index] for each in rounds] for index in range(2))

    def median(runs: Sequence[Printed], value: Callable[[Printed], float]) -> float:
        return statistics.median(value(each) for each in runs) / (PRINTING * SIZE / 1e9)

    name = f"{PRINTING} ranks print 100 MB each"
    text = "(peer: torchrun --tee 3)"
    return [
        Figure(
            f"{name}, s a GB until the run has ended {text}",
            median(ours, lambda each: each.seconds),
            median(peer, lambda each: each.seconds),
            1.0,
            "ratio",
        ),
        Figure(
            f"{name}, s a GB until the last line {text}",
            median(ours, lambda each: each.printing),
            median(peer, lambda each: each.printing),
        ),
        Figure(
            f"{name}, growth of the engine's memory, MB",
            statistics.median(each.growth for each in ours),
            goal=GROWTH_GOAL_MB,
        ),
    ]


def _printed(launch: Callable[[Path], tuple[float, float]]) -> Printed:
    """Return the times of a launch, which returns the time of its end, and the growth of its memory."""
    with tempfile.TemporaryDirectory(prefix="allranks-logs-") as parent:
        folder = Path(parent)
        (folder / "times").mkdir()
        ended, growth = launch(folder)
        times = [path.read_text().split() for path in (folder / "times").iterdir()]
        if len(times) != PRINTING:
            raise RuntimeError(f"{len(times)} of {PRINTING} ranks have printed")
        first = min(float(began) for began, _ in times)
        return Printed(ended - first, max(float(end) for _, end in times) - first, growth)


def _by_engine(folder: Path) -> tuple[float, float]:
    script = str(HERE / "chains" / "printing.py")
    output = run([sys.executable, script, str(PRINTING), str(SIZE), str(folder)], PYTHONPATH=str(HERE))
    ended, growth = map(float, output.split())
    return ended, growth


def _by_torchrun(folder: Path) -> tuple[float, float]:
    command = [str(Path(ALLRANKS).parent / "torchrun"), "--standalone", "--nproc-per-node", str(PRINTING)]
    command += ["--tee", "3", "--log-dir", str(folder / "logs")]
    command += [str(HERE / "ranks" / "print_lines.py"), str(SIZE), str(folder / "times")]
    variables = environment(PYTHONUNBUFFERED="1", OMP_NUM_THREADS="1")  # as the engine sets them
    subprocess.run(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.time(), 0.0


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
