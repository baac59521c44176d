"""Measure the collectives between all ranks, check every result, and compare the all-reduce with what is expected."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import page
import torch
import torch.distributed as dist
from collectives import COLLECTIVES
from measuring import Row, Skipped, measure, sizes
from verdict import Expected, Verdict, expected, judge

from allranks import runtime
from allranks.contract.own_variables import SIZE
from allranks.errors import InputError, Problem
from allranks.hardware.sizes import Size, find, known

LARGEST = {"cuda": 4 << 30, "cpu": 64 << 20}
"""Bytes of the largest size where it is not given."""


def benchmark(ranks: runtime.Ranks) -> None:
    args = arguments()
    names, size = names_of(args.collectives), size_of(args.size)
    scan = scan_of(args, ranks)
    about = describe(args, ranks)
    rows: list[Row] = []
    skipped: list[Skipped] = []
    for bytes_ in scan:
        dtype = getattr(torch, args.dtype)
        for found in measure(names, bytes_, dtype, ranks, warm_up=args.warm_up, iterations=args.iterations):
            (rows if isinstance(found, Row) else skipped).append(found)
        log(ranks, [row for row in rows if row.size >= bytes_], bytes_)
    verdict = judge(best(rows), against(size, args.expected_gb_s, about, ranks), args.fail_below)
    if ranks.is_main:
        write(args.bandwidth, about, rows, skipped, verdict)
        tell(rows, skipped, verdict)
    ranks.barrier()
    wrong = sorted({row.collective for row in rows if row.wrong})
    if wrong:
        raise RuntimeError(f"{', '.join(wrong)} gave wrong results: bandwidth.json says at which sizes")
    if verdict.failed:
        raise RuntimeError(verdict.text)


def names_of(text: str) -> list[str]:
    """The collectives. Raises InputError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in COLLECTIVES]
    if unknown or not names:
        found = f"no collective {unknown[0]!r}" if unknown else "no collective"
        raise InputError(Problem("input collectives", found, ", ".join(COLLECTIVES), "give one or several of these"))
    return names


def size_of(name: str | None) -> Size | None:
    """The instances' size, as the input or the environment has it. Raises InputError where the input's is not known."""
    return find(name, "input size") if name else known(os.environ.get(SIZE, ""))


def scan_of(args: argparse.Namespace, ranks: runtime.Ranks) -> list[int]:
    """The sizes in bytes. Raises InputError where there is none, or nobody to talk to."""
    if ranks.world_size < 2:
        fix = "give more instances, or more processes on each"
        raise InputError(Problem("layout", "one rank", "at least two, which can talk to each other", fix))
    largest = args.max_bytes or max(LARGEST[ranks.device.type], args.min_bytes)
    if largest < args.min_bytes:
        found = f"{largest} bytes at most, and {args.min_bytes} at least"
        raise InputError(Problem("input max_bytes", found, "no less than min_bytes", "change one of them"))
    return sizes(args.min_bytes, largest, args.factor)


def describe(args: argparse.Namespace, ranks: runtime.Ranks) -> dict[str, Any]:
    """Between whom and over what. A collective."""
    about = runtime.measured_on(ranks)
    backends = dict(pair.split(":") for pair in dist.get_backend_config().split(","))
    chosen = {name: getattr(args, name) for name in ("dtype", "warm_up", "iterations")}
    over = {"launcher": ranks.launcher, "backend": backends[about["device"]], "torch": torch.__version__}
    return about | chosen | over


def against(size: Size | None, given: float | None, about: dict[str, Any], ranks: runtime.Ranks) -> Expected:
    """What the all-reduce is compared with."""
    return expected(
        size, given, instances=ranks.instance_count, ranks_each=ranks.local_world_size, backend=about["backend"]
    )


def best(rows: Sequence[Row]) -> float | None:
    """The best bus bandwidth of an all-reduce whose result was right."""
    return max((row.bus_gb_s for row in rows if row.collective == "all_reduce" and not row.wrong), default=None)


def log(ranks: runtime.Ranks, rows: Sequence[Row], size: int) -> None:
    """Each collective's bus bandwidth to MLflow, the bytes being the step."""
    if rows:
        ranks.metrics.log({f"{row.collective}_bus_gb_s": row.bus_gb_s for row in rows}, step=size)


def write(
    folder: Path, about: dict[str, Any], rows: Sequence[Row], skipped: Sequence[Skipped], verdict: Verdict
) -> None:
    """bandwidth.json, bandwidth.svg and index.html."""
    figures = about | {
        "verdict": dataclasses.asdict(verdict),
        "rows": [dataclasses.asdict(row) for row in rows],
        "skipped": [dataclasses.asdict(one) for one in skipped],
    }
    texts = {
        "bandwidth.json": json.dumps(figures, indent=2) + "\n",
        "bandwidth.svg": page.picture(rows, verdict),
        "index.html": page.html(about, rows, skipped, verdict),
    }
    # What lies in ./outputs are the run's own artifacts, where Azure ML's studio shows the page.
    for place in (folder, Path("outputs")):
        place.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8")


def tell(rows: Sequence[Row], skipped: Sequence[Skipped], verdict: Verdict) -> None:
    """The figures as a table for the log."""
    print(f"{'collective':<15}{'bytes':>13}{'us':>13}{'algbw GB/s':>12}{'busbw GB/s':>12}{'wrong':>7}")
    for row in rows:
        rates = f"{row.algorithm_gb_s:>12.3f}{row.bus_gb_s:>12.3f}"
        print(f"{row.collective:<15}{row.size:>13}{row.seconds * 1e6:>13.1f}{rates}{row.wrong:>7}")
    for one in skipped:
        print(f"{one.collective:<15}{one.size:>13}  not measured: {one.reason}", file=sys.stderr)
    print(verdict.text, flush=True)


def arguments() -> argparse.Namespace:
    """The component's inputs and outputs, described in component.yaml."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--min_bytes", type=int, default=1024)
    parser.add_argument("--max_bytes", type=int)
    parser.add_argument("--factor", type=int, default=4)
    parser.add_argument("--warm_up", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--dtype", choices=["float32", "float16", "bfloat16"], default="float32")
    parser.add_argument("--size")
    parser.add_argument("--expected_gb_s", type=float)
    parser.add_argument("--fail_below", type=float)
    parser.add_argument("--bandwidth", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    runtime.main(benchmark)
