"""Find the best of the numbers that the iterations of a loop wrote."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import control_outputs


class BadValues(Exception):
    """The values cannot be compared. The message says why and what to do."""


def numbers(text: str) -> list[float]:
    """Return the numbers of a JSON list. The items may be strings.

    Raise BadValues if it is not a list of finite numbers, or is empty.
    """
    try:
        values = [float(value) for value in json.loads(text)]
    except (ValueError, TypeError):
        values = []
    if not values or not all(map(math.isfinite, values)):
        fix = "Give a number output of a parallel_for loop, such as [0.91, 0.94]."
        raise BadValues(f"{text!r} is no list of finite numbers. {fix}")
    return values


def best(values: Sequence[float], goal: str) -> int:
    """Return the index of the largest (goal `maximize`) or smallest number; the first if several are equal."""
    pick = max if goal == "maximize" else min
    return pick(range(len(values)), key=values.__getitem__)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numbers", required=True)
    parser.add_argument("--goal", choices=["maximize", "minimize"], default="maximize")
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--value", type=Path, required=True)
    args = parser.parse_args()
    try:
        values = numbers(args.numbers)
    except BadValues as error:
        print(f"select_best: {error}", file=sys.stderr)
        sys.exit(2)
    index = best(values, args.goal)
    control_outputs.write({"index": (args.index, index), "value": (args.value, values[index])})
    print(f"the best of {len(values)} numbers is number {index}: {values[index]:.6g}")


if __name__ == "__main__":
    main()
