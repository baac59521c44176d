"""Measure the collectives between all ranks, check every result, and compare the all-reduce with the expected
bandwidth."""

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import page
import torch
import torch.distributed as dist
from collectives import COLLECTIVES, Place
from measuring import Row, Skipped, measure, sizes

from allranks import runtime
from allranks.contract.variables import SIZE
from allranks.hardware.sizes import find, known
from allranks_steps.charts import sheet
from allranks_steps.messages import bad_input
from verdict import expected, judge

LARGEST = {"cuda": 4 << 30, "cpu": 64 << 20}
"""Default of max_bytes, by device type."""


def benchmark(ranks: runtime.Ranks, args: argparse.Namespace) -> None:
    names = collective_names(args.collectives)
    size = find(args.size, "input size") if args.size else known(os.environ.get(SIZE, ""))
    scan = array_sizes(args, ranks)
    about = describe(args, ranks)
    place = Place(ranks.rank, ranks.world_size, ranks.device, getattr(torch, args.dtype))
    rows: list[Row] = []
    skipped: list[Skipped] = []
    for bytes_ in scan:
        for name in names:
            result = measure(name, bytes_, place, ranks, args.warm_up, args.iterations)
            if isinstance(result, Row):
                rows.append(result)
                ranks.metrics.log({f"{name}_bus_gb_s": result.bus_gb_s}, step=bytes_)
            else:
                skipped.append(result)
    best = max((row.bus_gb_s for row in rows if row.collective == "all_reduce" and not row.wrong), default=None)
    against = expected(
        size,
        args.expected_gb_s,
        instances=ranks.instance_count,
        ranks_each=ranks.local_world_size,
        backend=about["backend"],
    )
    verdict = judge(best, against, args.fail_below)
    if ranks.is_main:
        figures = about | {
            "verdict": dataclasses.asdict(verdict),
            "rows": [dataclasses.asdict(row) for row in rows],
            "skipped": [dataclasses.asdict(entry) for entry in skipped],
        }
        texts = {
            "bandwidth.json": json.dumps(figures, indent=2) + "\n",
            "bandwidth.svg": page.picture(rows, verdict),
            "index.html": page.html(about, rows, skipped, verdict),
        }
        sheet.write(args.bandwidth, texts)
        print_table(rows, skipped)
        print(verdict.text, flush=True)
    ranks.barrier()
    wrong = sorted({row.collective for row in rows if row.wrong})
    if wrong:
        raise RuntimeError(f"{', '.join(wrong)} gave wrong results: see the sizes in bandwidth.json")
    if verdict.failed:
        raise RuntimeError(verdict.text)


def collective_names(text: str) -> list[str]:
    """Return the names of the collectives. Raise InputError if one is unknown or there is none."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in COLLECTIVES]
    if unknown or not names:
        found = f"no collective {unknown[0]!r}" if unknown else "no collective"
        raise bad_input("input collectives", found, ", ".join(COLLECTIVES), "give one or several of these")
    return names


def array_sizes(args: argparse.Namespace, ranks: runtime.Ranks) -> list[int]:
    """Return the array sizes in bytes. Raise InputError if there is none, or only one rank."""
    if ranks.world_size < 2:
        fix = "give more instances, or more processes on each"
        raise bad_input("layout", "one rank", "at least two ranks", fix)
    largest = args.max_bytes or max(LARGEST[ranks.device.type], args.min_bytes)
    if largest < args.min_bytes:
        found = f"{largest} bytes at most, and {args.min_bytes} at least"
        raise bad_input("input max_bytes", found, "no less than min_bytes", "change one of them")
    return sizes(args.min_bytes, largest, args.factor)


def describe(args: argparse.Namespace, ranks: runtime.Ranks) -> dict[str, Any]:
    """Describe the ranks, the options, the backend and the versions. A collective."""
    about = runtime.measured_on(ranks)
    backends = dict(pair.split(":") for pair in dist.get_backend_config().split(","))
    options = {name: getattr(args, name) for name in ("dtype", "warm_up", "iterations")}
    software = {"launcher": ranks.launcher, "backend": backends[about["device"]], "torch": torch.__version__}
    return about | options | software


def print_table(rows: Sequence[Row], skipped: Sequence[Skipped]) -> None:
    """Print the figures as nccl-tests does."""
    print(f"{'collective':<15}{'bytes':>13}{'us':>13}{'algbw GB/s':>12}{'busbw GB/s':>12}{'wrong':>7}")
    for row in rows:
        rates = f"{row.algorithm_gb_s:>12.3f}{row.bus_gb_s:>12.3f}"
        print(f"{row.collective:<15}{row.size:>13}{row.seconds * 1e6:>13.1f}{rates}{row.wrong:>7}")
    for entry in skipped:
        print(f"{entry.collective:<15}{entry.size:>13}  not measured: {entry.reason}", file=sys.stderr)


if __name__ == "__main__":
    given = runtime.arguments()
    runtime.main(lambda ranks: benchmark(ranks, given))
