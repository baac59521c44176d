"""The time of an iteration of LightGBM on 1, 2 and 3 ranks, and the quality of their trees.

The ranks are processes of `train_gradient_boosting`, with one thread each, and divide the same 200,000 rows of 28
features. Measured are the CPU seconds of an iteration on the rank that needs most, which is what an iteration takes on
instances with a core each and a network that costs nothing, and the wall time, which falls here as far as there are
cores. The exchange of histograms is included in both.

Peer: one rank, which is LightGBM alone. The goal of the quality is the difference of the AUC on the test rows.

GRADIENT_BOOSTING_ROWS=1000000 measures with another number of rows.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.figures import Figure, finish
from bench.timing import environment

from allranks.contract import produce
from allranks.contract.launch import Launch
from allranks.contract.pytorch import PyTorch

ROOT = Path(__file__).resolve().parents[1]
COMPONENTS = ROOT / "components"
ROWS = int(os.environ.get("GRADIENT_BOOSTING_ROWS", 200_000))
FEATURES = 28
ITERATIONS = 60
RANKS = (2, 3)
REPEATS = 3
GOALS = {2: 0.8, 3: 0.6}
"""Of an iteration's CPU time on one rank: a half and a third, and what the exchange may cost."""

AUC_GOAL = 0.002


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = _prepare(folder)
        measured: dict[int, list[dict[str, float]]] = {count: [] for count in (1, *RANKS)}
        for repeat in range(REPEATS):  # in turn, so that other load affects all of them
            for count in measured:
                measured[count].append(_measure(data, folder / f"{count}-{repeat}", count))
    figures = []
    for count in RANKS:
        for key, name, goal in (("cpu", "CPU ms", GOALS[count]), ("wall", "ms", None)):
            ours, peer = (statistics.median(row[key] for row in measured[ranks]) for ranks in (count, 1))
            label = f"an iteration on {count} ranks, {name} (peer: 1 rank)"
            figures.append(Figure(label, 1000 * ours, 1000 * peer, goal, of="ratio"))
        difference = max(abs(row["auc"] - measured[1][0]["auc"]) for row in measured[count])
        figures.append(Figure(f"AUC of {count} ranks, difference from 1 rank", difference, goal=AUC_GOAL))
    finish("Gradient boosting on several ranks", figures)


def _prepare(folder: Path) -> Path:
    table = folder / "table"
    command = [sys.executable, str(COMPONENTS / "tables/prepare_table/prepare_table.py"), "--table", str(table)]
    command += ["--source", "make_classification", "--row_count", str(ROWS), "--feature_count", str(FEATURES)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())
    return table


def _measure(data: Path, folder: Path, ranks: int) -> dict[str, float]:
    """Train and evaluate. Return the CPU and wall seconds of an iteration, and the AUC."""
    print(f"{ranks} rank{'s' * (ranks > 1)} ...", file=sys.stderr)
    outputs = {name: folder / name for name in ("model", "checkpoints", "history", "feature_importance")}
    arguments = ["--num_iterations", str(ITERATIONS), "--eval_steps", "20", "--save_steps", "0"]
    arguments += [word for name, path in outputs.items() for word in (f"--{name}", str(path))]
    _run("tables/train_gradient_boosting/train.py", ["--data", str(data), *arguments], ranks)
    history = json.loads(outputs["history"].read_text())
    # Without the first point, in which the rows are divided into bins.
    points: list[dict[str, Any]] = history["points"][1:]
    metrics = ["--data", str(data), "--model", str(outputs["model"]), "--metrics", str(folder)]
    _run("tables/evaluate_table_model/evaluate.py", metrics, 1)
    return {
        "cpu": statistics.median(point["cpu_seconds"] for point in points),
        "wall": statistics.median(point["seconds"] for point in points),
        "auc": json.loads((folder / "metrics.json").read_text())["auc"],
    }


def _run(script: str, arguments: list[str], ranks: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launch = Launch(PyTorch(ranks), ("127.0.0.1",), ("localhost",), master_port=port)
    base = environment(OMP_NUM_THREADS="1")
    processes = [
        subprocess.Popen(
            [sys.executable, str(COMPONENTS / script), *arguments],
            env=base | produce.environment(launch, process),
            stdout=subprocess.DEVNULL,
        )
        for process in produce.processes(launch)
    ]
    codes = [process.wait() for process in processes]
    if any(codes):
        raise RuntimeError(f"{script} on {ranks} ranks ended with {codes}")


if __name__ == "__main__":
    main()
