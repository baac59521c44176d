"""The cost of many steps: seconds and memory for 100, 1,000 and 10,000 steps, and the exponent of their growth.

The shapes are a chain, a fan, and nested pipeline components. The plans are constructed directly, because azure-ai-ml
takes about 12 ms to compile a step, which is not our cost. Each action runs in a new process, on loopback, after a
warm-up with a few steps, so that imports do not count. The seconds are the wall time of the action; the memory is the
peak of the process above its value before the action. Actions:

check   requirements and warnings of a plan
run     steps that run a shell command without effect, each in its own process
show    the tables of `allranks show`
resume  the same run, whose last tenth is run again
runs    the table of `allranks runs` for this number of runs, each of 10 steps
page    the HTML page, which is not included in `run` and `resume`

The exponent is the slope of a line through the logarithms: 1 is linear, 2 quadratic. Values below 1 ms or 1 MB are
noise and are left out. There is no exponent if fewer than two sizes remain.

The last figures: 1,000 steps that are all reused, with their page, and how often a file of 5 GB that 200 steps share is
read.

SCALE_SIZES=10,100 sets other numbers of steps, SCALE_SHARED_BYTES=1000000 another file size.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import run

ACTIONS = Path(__file__).resolve().parent / "scaling" / "actions.py"
SIZES = tuple(int(size) for size in os.environ.get("SCALE_SIZES", "100,1000,10000").split(","))
SHARED_BYTES = int(os.environ.get("SCALE_SHARED_BYTES", 5 * 10**9))
SHAPES = ("chain", "fan", "nested")
REUSED = min(1000, SIZES[-1])
EXPONENT = 1.1
SMALLEST = {"seconds": 0.001, "megabytes": 1.0}
"""Smaller values are noise."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="allranks-scale-") as folder:
        figures = [figure for shape in SHAPES for figure in _shape_figures(shape, Path(folder) / shape)]
        figures += _growth_figures(
            "check", "bound", {size: _measure("check", "bound", size, Path(folder)) for size in SIZES}
        )
        figures += _growth_figures(
            "runs", "", {size: _measure("runs", "chain", size, Path(folder) / f"runs-{size}") for size in SIZES}
        )
        for shape in SHAPES:
            seconds = _measure("reuse", shape, REUSED, Path(folder) / f"reuse-{shape}")["seconds"]
            figures.append(Figure(f"{REUSED:,} reused steps, {shape}, s", seconds, goal=3))
        figures += _shared_input_figures(Path(folder) / "shared")
    finish("What many steps cost", figures)


def _shape_figures(shape: str, folder: Path) -> Iterator[Figure]:
    by_action: dict[str, dict[int, Mapping[str, float]]] = {}
    for size in SIZES:
        for action in ("check", "run", "show", "page", "resume"):
            by_action.setdefault(action, {})[size] = _measure(action, shape, size, folder / str(size))
    for action, by_size in by_action.items():
        yield from _growth_figures(action, shape, by_size, goal=None if action == "page" else EXPONENT)


def _growth_figures(
    action: str, shape: str, by_size: Mapping[int, Mapping[str, float]], goal: float | None = EXPONENT
) -> Iterator[Figure]:
    name = f"{action}, {shape}" if shape else action
    for key, unit in (("seconds", "s"), ("megabytes", "MB")):
        for size, measured in by_size.items():
            yield Figure(f"{name}, {size:,}, {unit}", measured[key])
        values = {size: measured[key] for size, measured in by_size.items() if measured[key] >= SMALLEST[key]}
        if len(values) > 1:
            yield Figure(f"{name}, exponent of {key}", exponent(values), goal=goal)


def exponent(values: Mapping[int, float]) -> float:
    """Return the exponent with which at least two values grow by size: the least-squares slope of their logarithms."""
    xs, ys = [math.log(size) for size in values], [math.log(value) for value in values.values()]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def _shared_input_figures(folder: Path) -> Sequence[Figure]:
    folder.mkdir()
    with open(folder / "shared.bin", "wb") as file:
        file.truncate(SHARED_BYTES)  # a sparse file, which takes as long to read as any other
    measured = _measure("shared", "chain", 200, folder)
    text = f"a file of {SHARED_BYTES / 1e9:g} GB that 200 steps share"
    return (
        Figure(f"{text}: times that it is read", measured["times"], goal=1.1),
        Figure(f"{text}: seconds of the run", measured["seconds"]),
    )


def _measure(action: str, shape: str, count: int, folder: Path) -> Mapping[str, float]:
    measured: dict[str, float] = json.loads(run([sys.executable, str(ACTIONS), action, shape, str(count), str(folder)]))
    print(f"{action}, {shape}, {count:,}: {measured}", file=sys.stderr)
    return measured


if __name__ == "__main__":
    main()
