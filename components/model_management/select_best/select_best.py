"""Find the best of the numbers that the iterations of a loop wrote."""

import json
import math
from collections.abc import Sequence

from allranks.runtime import arguments
from allranks_steps.messages import bad_input
from allranks_steps.models.results import write_control_outputs


def numbers(text: str) -> list[float]:
    """Return the numbers of a JSON list. The items may be strings.

    Raise InputError if it is not a list of finite numbers, or is empty.
    """
    try:
        values = [float(value) for value in json.loads(text)]
    except (ValueError, TypeError):
        values = []
    if not values or not all(map(math.isfinite, values)):
        fix = "give a number output of a parallel_for loop, such as [0.91, 0.94]"
        raise bad_input("input numbers", f"{text!r} is not a list of finite numbers", "", fix)
    return values


def best(values: Sequence[float], goal: str) -> int:
    """Return the index of the largest (goal `maximize`) or smallest number; the first if several are equal."""
    pick = max if goal == "maximize" else min
    return pick(range(len(values)), key=values.__getitem__)


def main() -> None:
    args = arguments()
    values = numbers(args.numbers)
    index = best(values, args.goal)
    write_control_outputs({"index": (args.index, index), "value": (args.value, values[index])})
    print(f"the best of {len(values)} numbers is number {index}: {values[index]:.6g}")


if __name__ == "__main__":
    main()
