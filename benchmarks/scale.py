"""What many steps cost: seconds and memory of 100, 1,000 and 10,000, and the exponent with which they grow.

Shapes are a chain, a fan, and pipeline components within each other. The plans are made by hand: azure-ai-ml takes
some 12 ms to compile a step, which is not ours. Each action is done in a fresh process, on loopback, after it was done
there with a few steps: imports do not count. The seconds are wall time around the action; the memory is the peak of its
process above what it had before. Actions:

check   requirements and warnings of a plan
run     steps that run a command of the shell that does nothing, each in a process of its own
show    the tables of `allranks show`
resume  the same run, of which the last tenth is done again
runs    the table of `allranks runs` of as many runs, each of 10 steps
page    the HTML page, which `run` and `resume` are measured without

The exponent is the slope of a line through the logarithms: 1 is linear, 2 quadratic. What takes less than 1 ms or 1 MB
is a matter of chance and not in it; there is none where fewer than two sizes are left.

Last: 1,000 steps that are all reused, with their page, and how often a file of 5 GB is read that 200 steps share.

SCALE_SIZES=10,100 measures other numbers of steps, SCALE_SHARED_BYTES=1000000 another file.
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
"""What is too small to be told from chance."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="allranks-scale-") as folder:
        figures = [figure for shape in SHAPES for figure in _of_shape(shape, Path(folder) / shape)]
        figures += _grown("check", "bound", {size: _act("check", "bound", size, Path(folder)) for size in SIZES})
        figures += _grown(
            "runs", "", {size: _act("runs", "chain", size, Path(folder) / f"runs-{size}") for size in SIZES}
        )
        for shape in SHAPES:
            seconds = _act("reuse", shape, REUSED, Path(folder) / f"reuse-{shape}")["seconds"]
            figures.append(Figure(f"{REUSED:,} reused steps, {shape}, s", seconds, goal=3))
        figures += _of_shared_input(Path(folder) / "shared")
    finish("What many steps cost", figures)


def _of_shape(shape: str, folder: Path) -> Iterator[Figure]:
    found: dict[str, dict[int, Mapping[str, float]]] = {}
    for size in SIZES:
        for action in ("check", "run", "show", "page", "resume"):
            found.setdefault(action, {})[size] = _act(action, shape, size, folder / str(size))
    for action, by_size in found.items():
        yield from _grown(action, shape, by_size, goal=None if action == "page" else EXPONENT)


def _grown(
    action: str, shape: str, by_size: Mapping[int, Mapping[str, float]], goal: float | None = EXPONENT
) -> Iterator[Figure]:
    name = f"{action}, {shape}" if shape else action
    for key, unit in (("seconds", "s"), ("megabytes", "MB")):
        for size, found in by_size.items():
            yield Figure(f"{name}, {size:,}, {unit}", found[key])
        values = {size: found[key] for size, found in by_size.items() if found[key] >= SMALLEST[key]}
        if len(values) > 1:
            yield Figure(f"{name}, exponent of {key}", exponent(values), goal=goal)


def exponent(values: Mapping[int, float]) -> float:
    """The exponent with which values grow by size: the slope of their logarithms, by least squares. At least two."""
    xs, ys = [math.log(size) for size in values], [math.log(value) for value in values.values()]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def _of_shared_input(folder: Path) -> Sequence[Figure]:
    folder.mkdir()
    with open(folder / "shared.bin", "wb") as file:
        file.truncate(SHARED_BYTES)  # it takes no room on the disk, and as long to read as any other
    found = _act("shared", "chain", 200, folder)
    text = f"a file of {SHARED_BYTES / 1e9:g} GB that 200 steps share"
    return (
        Figure(f"{text}: times that it is read", found["times"], goal=1.1),
        Figure(f"{text}: seconds of the run", found["seconds"]),
    )


def _act(action: str, shape: str, count: int, folder: Path) -> Mapping[str, float]:
    found: dict[str, float] = json.loads(run([sys.executable, str(ACTIONS), action, shape, str(count), str(folder)]))
    print(f"{action}, {shape}, {count:,}: {found}", file=sys.stderr)
    return found


if __name__ == "__main__":
    main()
